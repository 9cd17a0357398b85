package dev.penstock.runtime.model.parameters;

import dev.penstock.actors.spi.TensorPiece;
import dev.penstock.runtime.model.shape.SwapCommit;
import java.lang.foreign.MemorySegment;
import java.util.Optional;

/**
 * The source of the first values of a stage's tensors: a checkpoint, a file in Hugging Face's
 * format, or nothing. Called on the shard's thread while the stage is built.
 */
@FunctionalInterface
public interface ParameterSource {
    /**
     * Copies a tensor if this source has it.
     *
     * @param name a parameter in Hugging Face's GPT-2 naming, or {@code optimizer.m.NAME} / {@code
     *     optimizer.v.NAME}
     * @param piece what the stage holds of it, with the whole shape that it expects; a source that
     *     has another shape throws, naming both
     * @param destination receives the elements of the piece as F32, dense, in native byte order
     * @return false if this source does not have the tensor, which then starts from its default
     */
    boolean fill(String name, TensorPiece piece, MemorySegment destination);

    /**
     * The update after which swapped stages already are, or which brings them there: they have
     * their values themselves, and nothing is filled.
     */
    default Optional<SwapCommit> swapped() {
        return Optional.empty();
    }

    /** Returns the same without what replicas that take steps alone have each for themselves. */
    default ParameterSource ofEqualReplicas() {
        ParameterSource all = this;
        return new ParameterSource() {
            @Override
            public boolean fill(String name, TensorPiece piece, MemorySegment destination) {
                return !name.startsWith(OuterState.PREFIX) && all.fill(name, piece, destination);
            }

            @Override
            public Optional<SwapCommit> swapped() {
                return all.swapped();
            }
        };
    }

    /** A source that has nothing, for a fresh model. */
    static ParameterSource none() {
        return (_, _, _) -> false;
    }
}
