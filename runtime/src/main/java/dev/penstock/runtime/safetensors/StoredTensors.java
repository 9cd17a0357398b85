package dev.penstock.runtime.safetensors;

import java.nio.file.Path;
import java.util.Collection;
import java.util.Optional;

/**
 * Tensors of one model as one or several files hold them, whatever the format: names and shapes are
 * those of the files, the elements stay where they are until they are read. May be read from any
 * thread; the tensors die with {@link #close}.
 */
public interface StoredTensors extends AutoCloseable {
    /** Returns the file; for a model in several files, the index that names them. */
    Path path();

    /** Returns all tensors, in the order of the file. */
    Collection<StoredTensor> tensors();

    /** Finds a tensor by its name in the file. */
    Optional<StoredTensor> find(String name);

    /**
     * Looks whether what was read so far is what the files held when they were opened.
     *
     * @throws StoredFileException if a file has become shorter since; reading on may fail with an
     *     {@link InternalError}
     */
    void requireWhole();

    @Override
    void close();
}
