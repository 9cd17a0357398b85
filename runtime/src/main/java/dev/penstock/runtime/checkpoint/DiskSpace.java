package dev.penstock.runtime.checkpoint;

import dev.penstock.runtime.safetensors.StoredFileException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Compares what a file will take with what its disk has. */
final class DiskSpace {
    private DiskSpace() {}

    /**
     * Refuses early, before anything is written.
     *
     * @param file about to be written; its folder exists
     * @throws StoredFileException if the disk says that it has less room than that
     */
    static void require(Path file, long bytes) throws IOException {
        long free = free(file);
        if (free < bytes) {
            throw new StoredFileException(file, refusal(bytes, free));
        }
    }

    /** The failure of a write, with the figures that tell whether the disk was full. */
    static StoredFileException failure(Path file, long bytes, Exception cause) {
        try {
            return new StoredFileException(
                    file, refusal(bytes, free(file)) + ": " + cause.getMessage(), cause);
        } catch (IOException e) {
            return StoredFileException.of(file, "write the checkpoint", cause);
        }
    }

    private static String refusal(long bytes, long free) {
        return ("cannot write the checkpoint: %,d bytes wanted, %,d free; free some space or lower"
                        + " checkpoint.retain")
                .formatted(bytes, free);
    }

    private static long free(Path file) throws IOException {
        return Files.getFileStore(DurableFiles.folderOf(file)).getUsableSpace();
    }
}
