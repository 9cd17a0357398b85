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
     * @param source has the model's tensors
     * @throws StoredFileException if it cannot be written, or a value does not fit the type
     */
    public static void write(Path file, GgufModel model, ModelTensors source) {
        Path partial = DurableFiles.aside(file);
        MadeFolders folders;
        try {
            folders = MadeFolders.of(DurableFiles.folderOf(file));
        } catch (IOException e) {
            throw DiskSpace.failure(file, model.bytes(), e);
        }
        try {
            write(file, partial, model, source);
        } catch (StoredFileException e) {
            folders.remove();
            throw e;
        }
    }

    private static void write(Path file, Path partial, GgufModel model, ModelTensors source) {
        try {
            Files.deleteIfExists(partial);
            DiskSpace.require(file, model.bytes());
            model.write(partial);
            source.requireWhole();
            DurableFiles.move(partial, file);
        } catch (OutOfRangeException e) {
            throw failed(
                    partial,
                    source,
                    new StoredFileException(file, String.valueOf(e.getMessage()), e));
        } catch (IOException e) {
            throw failed(partial, source, DiskSpace.failure(file, model.bytes(), e));
        } catch (StoredFileException e) {
            throw failed(
                    partial,
                    source,
                    e.getCause() == null ? e : DiskSpace.failure(file, model.bytes(), e));
        } catch (InternalError e) { // a fault in memory into which a file is mapped
            throw failed(
                    partial, source, new StoredFileException(file, "cannot read its tensors", e));
        }
    }

    /**
     * Removes the partial file, which is useless: on a full disk its space is needed. Says first
     * what is wrong with the source, if anything is: all else may follow from it.
     */
    private static StoredFileException failed(
            Path partial, ModelTensors source, StoredFileException failure) {
        StoredFileException reason = failure;
        try {
            source.requireWhole();
        } catch (StoredFileException e) {
            e.addSuppressed(failure);
            reason = e;
        }
        try {
            Files.deleteIfExists(partial);
        } catch (IOException e) {
            reason.addSuppressed(e);
        }
        return reason;
    }
}
