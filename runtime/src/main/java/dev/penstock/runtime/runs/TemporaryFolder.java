package dev.penstock.runtime.runs;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A folder that is gone when its owner is done.
 *
 * @param path absolute
 */
public record TemporaryFolder(Path path) implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(TemporaryFolder.class);

    /**
     * Makes one where this machine has such folders.
     *
     * @throws UncheckedIOException if it cannot be made
     */
    public static TemporaryFolder make(String prefix) {
        try {
            return new TemporaryFolder(Files.createTempDirectory(prefix).toAbsolutePath());
        } catch (IOException e) {
            throw new UncheckedIOException("cannot make a temporary folder", e);
        }
    }

    @Override
    public void close() {
        try (Stream<Path> walk = Files.walk(path)) {
            List<Path> deepestFirst = walk.sorted(Comparator.reverseOrder()).toList();
            for (Path each : deepestFirst) {
                Files.deleteIfExists(each);
            }
        } catch (IOException | UncheckedIOException e) {
            LOG.warn("{} stays", path, e);
        }
    }
}
