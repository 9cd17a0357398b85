package dev.penstock.runtime.cluster;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Collection;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The members that a seed last knew, so that it finds its cluster again after its own death.
 *
 * @param file one {@code host:port} per line
 */
record MemberJournal(Path file) {
    private static final Logger LOG = LoggerFactory.getLogger(MemberJournal.class);

    /** Empty if nothing is known. */
    List<String> read() {
        try {
            return Files.exists(file) ? Files.readAllLines(file) : List.of();
        } catch (IOException e) {
            LOG.warn("{} cannot be read: the members of before are not known", file, e);
            return List.of();
        }
    }

    /** Replaces the list as a whole. */
    void write(Collection<String> members) {
        try {
            Path folder = file.toAbsolutePath().getParent();
            if (folder != null) {
                Files.createDirectories(folder);
            }
            Path next = file.resolveSibling(file.getFileName() + ".next");
            Files.write(next, members);
            Files.move(
                    next,
                    file,
                    StandardCopyOption.ATOMIC_MOVE,
                    StandardCopyOption.REPLACE_EXISTING);
        } catch (IOException e) {
            LOG.warn("{} cannot be written: a restarted seed will not find its members", file, e);
        }
    }
}
