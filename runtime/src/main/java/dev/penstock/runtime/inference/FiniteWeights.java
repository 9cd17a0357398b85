package dev.penstock.runtime.inference;

import dev.penstock.actors.spi.TensorPiece;
import dev.penstock.runtime.checkpoint.ModelTensors;
import dev.penstock.runtime.model.parameters.ParameterSource;
import dev.penstock.runtime.safetensors.TensorFacts;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Optional;

/**
 * Parameters, of which a NaN or an infinity is refused: with it every figure and every text would
 * be meaningless.
 *
 * @param source of the parameters; read by several threads
 */
public record FiniteWeights(ParameterSource source) implements ParameterSource {
    private static final int EXPONENT = 0x7f800000;

    private static final String ADVICE =
            "the weights are damaged, or their training diverged; try an earlier checkpoint";

    @Override
    public boolean fill(String name, TensorPiece piece, MemorySegment destination) {
        if (!source.fill(name, piece, destination)) {
            return false;
        }
        problem(name, destination, piece.elements())
                .ifPresent(
                        problem -> {
                            throw new IllegalStateException(problem);
                        });
        return true;
    }

    private static Optional<String> problem(String name, MemorySegment values, long count) {
        for (long i = 0; i < count; i++) {
            int bits = values.getAtIndex(ValueLayout.JAVA_INT_UNALIGNED, i);
            if ((bits & EXPONENT) == EXPONENT) {
                return Optional.of(
                        "%s: expected finite numbers, got %s; %s"
                                .formatted(name, Float.intBitsToFloat(bits), ADVICE));
            }
        }
        return Optional.empty();
    }

    /**
     * Returns why something computed with a model is not finite: which is its first tensor that is
     * not, if one is.
     *
     * @param parameters names, in the model's order
     */
    public static String reason(ModelTensors tensors, Iterable<String> parameters) {
        for (String name : parameters) {
            Optional<? extends TensorFacts> facts = tensors.find(name);
            if (facts.isEmpty()) {
                continue;
            }
            List<Integer> shape = facts.get().shape();
            TensorPiece whole = TensorPiece.all(shape.isEmpty() ? List.of(1) : shape);
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment values = arena.allocate(whole.elements() * Float.BYTES, Float.BYTES);
                tensors.copy(name, whole, values);
                Optional<String> problem = problem(name, values, whole.elements());
                if (problem.isPresent()) {
                    return problem.get();
                }
            }
        }
        return "its weights are finite, so numbers grow too large on the way; try another model or"
                + " an earlier checkpoint";
    }

    /** Requires the same of what a model makes of a text. */
    static void require(float[] logits) {
        for (float logit : logits) {
            if (!Float.isFinite(logit)) {
                throw new IllegalStateException(
                        "logits: expected finite numbers, got %s; numbers grow too large in this model"
                                .formatted(logit));
            }
        }
    }
}
