package dev.penstock.runtime.safetensors;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * A file as it was when it was mapped. Memory behind the end of a file that has become shorter
 * cannot be read, or reads as zeros.
 */
public final class MappedFile {
    private final Path path;
    private final long bytes;

    /** Tells it from a file that has its name later. */
    private final @Nullable Object key;

    private MappedFile(Path path, long bytes, @Nullable Object key) {
        this.path = path;
        this.bytes = bytes;
        this.key = key;
    }

    /**
     * Returns a file that has just been mapped.
     *
     * @param bytes that were mapped
     */
    public static MappedFile of(Path path, long bytes) throws IOException {
        return new MappedFile(
                path, bytes, Files.readAttributes(path, BasicFileAttributes.class).fileKey());
    }

    /** Returns where it was. */
    public Path path() {
        return path;
    }

    /**
     * Compares the size with that of now. A file that lost its name, or gave it to another, is
     * whole as long as it is mapped.
     *
     * @throws StoredFileException if the file is shorter
     */
    public void requireWhole() {
        BasicFileAttributes now;
        try {
            now = Files.readAttributes(path, BasicFileAttributes.class);
        } catch (IOException e) {
            return;
        }
        if (Objects.equals(now.fileKey(), key) && now.size() < bytes) {
            throw new StoredFileException(
                    path,
                    "became shorter while it was read: expected %,d bytes, got %,d; wait until the program that writes it has ended"
                            .formatted(bytes, now.size()));
        }
    }
}
