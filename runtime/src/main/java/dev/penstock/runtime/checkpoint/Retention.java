package dev.penstock.runtime.checkpoint;

import java.util.Collection;
import java.util.Comparator;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;

/**
 * Which published checkpoints stay.
 *
 * @param newest how many of the newest, at least 1
 * @param validationLosses what is known of steps when old ones are to go; the checkpoint of the
 *     lowest stays as well. May throw {@link java.io.UncheckedIOException}: then nothing goes
 */
public record Retention(int newest, Supplier<Map<Long, Double>> validationLosses) {
    public Retention {
        if (newest < 1) {
            throw new IllegalArgumentException(
                    "expected at least 1 retained checkpoint, got " + newest);
        }
    }

    /** The newest alone. */
    public static Retention newest(int newest) {
        return new Retention(newest, Map::of);
    }

    /** Of these steps the one with the lowest validation loss, the later one of equals. */
    public static Optional<Long> best(Collection<Long> steps, Map<Long, Double> losses) {
        return steps.stream()
                .filter(step -> Double.isFinite(losses.getOrDefault(step, Double.NaN)))
                .min(
                        Comparator.comparing((Long step) -> losses.getOrDefault(step, Double.NaN))
                                .thenComparing(Comparator.reverseOrder()));
    }
}
