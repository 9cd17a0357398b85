package dev.penstock.runtime.checkpoint;

import dev.penstock.actors.spi.TensorPiece;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.safetensors.StoredTensor;
import dev.penstock.runtime.safetensors.TensorFacts;
import dev.penstock.runtime.safetensors.TensorSource;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.Collection;
import java.util.Optional;

/**
 * Stored tensors of a model by their names, wherever they lie. They may be read from any thread
 * until closed.
 */
public interface ModelTensors extends AutoCloseable {
    /** Returns the file or directory they come from. */
    Path path();

    /** Returns all tensors. */
    Collection<? extends TensorFacts> tensors();

    /** Finds a tensor by name. */
    Optional<? extends TensorFacts> find(String name);

    /**
     * Reads a whole tensor, if it exists.
     *
     * @param arena provides the memory if it is stored in pieces; otherwise it is returned where it
     *     is stored
     */
    Optional<StoredTensor> read(String name, Arena arena);

    /** Returns a tensor to write elsewhere, if it exists, in the type in which it is stored. */
    Optional<? extends TensorSource> source(String name);

    /**
     * Copies a piece of an existing floating-point tensor as F32 in native byte order.
     *
     * @param piece of the tensor's shape
     */
    void copy(String name, TensorPiece piece, MemorySegment destination);

    /**
     * Copies a piece of a tensor as F32 in native byte order; has the signature of a source of
     * parameters.
     *
     * @return false if it does not exist
     * @throws StoredFileException if it has another shape or does not hold real numbers
     */
    default boolean fill(String name, TensorPiece piece, MemorySegment destination) {
        Optional<? extends TensorFacts> found = find(name);
        if (found.isEmpty()) {
            return false;
        }
        TensorFacts tensor = found.get();
        if (!tensor.shape().equals(piece.whole()) || !tensor.isFloatingPoint()) {
            throw new StoredFileException(
                    path(),
                    "%s: expected floating-point %s, got %s %s"
                            .formatted(name, piece.whole(), tensor.type(), tensor.shape()));
        }
        try {
            copy(name, piece, destination);
        } catch (InternalError e) { // a fault in memory into which a file is mapped
            requireWhole();
            throw e;
        }
        return true;
    }

    /**
     * Compares all parameters with a model before anything is loaded.
     *
     * @throws StoredFileException with every parameter that is missing, superfluous or of another
     *     shape
     */
    default void requireParameters(ModelConfig model) {
        new ModelFit(this).parameters(model).check();
    }

    /**
     * Compares all parameters but those of the head with a model that gets a new one.
     *
     * @param own the model whose parameters these are
     * @throws StoredFileException as of {@link #requireParameters}
     */
    default void requireBody(ModelConfig model, ModelConfig own) {
        new ModelFit(this).body(model, own).check();
    }

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
