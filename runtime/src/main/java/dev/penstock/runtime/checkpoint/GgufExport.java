package dev.penstock.runtime.checkpoint;

import dev.penstock.runtime.gguf.GgufModel;
import dev.penstock.runtime.safetensors.OutOfRangeException;
import dev.penstock.runtime.safetensors.StoredFileException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Puts a GGUF file on disk so that there is all of it or nothing. */
public final class GgufExport {
    private GgufExport() {}

    /**
     * Writes a model.
     *
     * @param file replaced if it exists; its folder is created if it does not
     * @throws StoredFileException if it cannot be written, or a value does not fit the type
     */
    public static void write(Path file, GgufModel model) {
        Path partial = file.resolveSibling(file.getFileName() + ".incomplete");
        try {
            Files.createDirectories(DurableFiles.folderOf(file));
            Files.deleteIfExists(partial);
            DiskSpace.require(file, model.bytes());
            model.write(partial);
            DurableFiles.move(partial, file);
        } catch (OutOfRangeException e) {
            throw failed(partial, new StoredFileException(file, String.valueOf(e.getMessage()), e));
        } catch (IOException e) {
            throw failed(partial, DiskSpace.failure(file, model.bytes(), e));
        } catch (StoredFileException e) {
            throw failed(
                    partial, e.getCause() == null ? e : DiskSpace.failure(file, model.bytes(), e));
        }
    }

    /** Removes the partial file, which is useless: on a full disk its space is needed. */
    private static StoredFileException failed(Path partial, StoredFileException failure) {
        try {
            Files.deleteIfExists(partial);
        } catch (IOException e) {
            failure.addSuppressed(e);
        }
        return failure;
    }
}
