package dev.penstock.runtime.checkpoint;

import dev.penstock.runtime.safetensors.StoredFileException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;
import java.util.UUID;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A checkpoint that stays while it is being read, even if its run is active and deletes it: its
 * files have second names (hard links) next to it, which cost no space. Where that is impossible,
 * in a folder without write permission or without hard links, it is the checkpoint itself.
 *
 * @param path of the folder to read
 */
public record HeldCheckpoint(Path path) implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(HeldCheckpoint.class);

    /** The prefix of folders that hold checkpoints. */
    private static final String PREFIX = "held-";

    /**
     * Holds a checkpoint until {@link #close}.
     *
     * @throws StoredFileException if its run has just deleted it
     */
    public static HeldCheckpoint of(SavedCheckpoint checkpoint) {
        Path folder = checkpoint.path().toAbsolutePath();
        Path holder = folder.resolveSibling(PREFIX + UUID.randomUUID());
        Path held = holder.resolve(folder.getFileName());
        try {
            Files.createDirectories(held);
            for (Path file : filesIn(folder)) {
                Files.createLink(held.resolve(file.getFileName()), file);
            }
            return new HeldCheckpoint(held);
        } catch (NoSuchFileException e) {
            delete(holder);
            throw new StoredFileException(
                    folder, "the run has just deleted this checkpoint; try again");
        } catch (IOException | UnsupportedOperationException e) {
            LOG.debug("cannot hold {}", folder, e);
            delete(holder);
            return new HeldCheckpoint(folder);
        }
    }

    /** Removes what killed processes had held. */
    static void sweep(Path root) {
        try {
            if (Files.isDirectory(root)) {
                filesIn(root).stream()
                        .filter(file -> file.getFileName().toString().startsWith(PREFIX))
                        .forEach(HeldCheckpoint::delete);
            }
        } catch (IOException e) {
            LOG.warn("{}: cannot read it", root, e);
        }
    }

    private static List<Path> filesIn(Path folder) throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            return files.toList();
        }
    }

    private static void delete(Path holder) {
        try {
            DurableFiles.delete(holder);
        } catch (IOException e) {
            LOG.warn("{} stays", holder, e);
        }
    }

    @Override
    public void close() {
        Path holder = DurableFiles.folderOf(path);
        if (holder.getFileName().toString().startsWith(PREFIX)) {
            delete(holder);
        }
    }
}
