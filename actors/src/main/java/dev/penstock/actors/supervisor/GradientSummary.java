package dev.penstock.actors.supervisor;

import dev.penstock.actors.spi.TensorNorm;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;

/**
 * The global gradient norm: the parameters' squared norms added in the order of their names, so
 * that its bits do not depend on how parameters lie on ranks.
 */
record GradientSummary(List<Part> parts, double norm) {
    /** One parameter's share, and the rank that reported it. */
    public record Part(int rank, TensorNorm tensor) {}

    /**
     * @param lossScale that the gradients carry: a power of two, so that the norm has the bits of
     *     gradients that carry none
     */
    static GradientSummary of(List<Part> parts, double lossScale) {
        List<Part> sorted =
                parts.stream()
                        .sorted(Comparator.comparing((Part part) -> part.tensor().parameter()))
                        .toList();
        double sum = 0;
        for (Part part : sorted) {
            sum += part.tensor().squaredNorm();
        }
        return new GradientSummary(sorted, Math.sqrt(sum) / lossScale);
    }

    /** {@code min(1, limit / (norm + 1e-6))}, PyTorch's coefficient; 1 without a limit. */
    double clipFactor(double limit) {
        return limit > 0 ? Math.min(1.0, limit / (norm + 1e-6)) : 1.0;
    }

    /** What keeps this step from being committed. */
    Optional<String> problem(long step, double loss) {
        if (!Double.isFinite(loss)) {
            return Optional.of(
                    "step %d: the loss is %s; nothing of the step was applied"
                            .formatted(step, loss));
        }
        return parts.stream()
                .filter(part -> !Double.isFinite(part.tensor().squaredNorm()))
                .findFirst()
                .map(
                        part ->
                                "step %d, rank %d: the gradient of %s is not finite; nothing of the step was applied; try a lower learning rate or a longer warm-up"
                                        .formatted(step, part.rank(), part.tensor().parameter()));
    }
}
