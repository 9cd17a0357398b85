package dev.penstock.runtime.checkpoint;

import dev.penstock.runtime.safetensors.StoredFileException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Compares the bytes that a file will take with the free space of its disk. */
final class DiskSpace {
    private DiskSpace() {}

    /**
     * Fails early, before anything is written.
     *
     * @param file about to be written; its folder exists
     * @throws StoredFileException if the disk reports less free space than that
     */
    static void require(Path file, long bytes) throws IOException {
        long free = free(file);
        if (free < bytes) {
            throw new StoredFileException(file, refusal(bytes, free));
        }
    }

    /** Returns the failure of a write, with the figures that show whether the disk was full. */
    static StoredFileException failure(Path file, long bytes, Exception cause) {
        try {
            return new StoredFileException(
                    file, refusal(bytes, free(file)) + ": " + cause.getMessage(), cause);
        } catch (IOException e) {
            return StoredFileException.of(file, "write the checkpoint", cause);
        }
    }

    private static String refusal(long bytes, long free) {
        String advice =
                free < bytes
                        ? "free some space or lower checkpoint.retain"
                        : "that is enough, so look for a quota, or at the cause";
        return "cannot write the checkpoint: %,d bytes needed, %,d free; %s"
                .formatted(bytes, free, advice);
    }

    private static long free(Path file) throws IOException {
        return Files.getFileStore(DurableFiles.folderOf(file)).getUsableSpace();
    }
}
