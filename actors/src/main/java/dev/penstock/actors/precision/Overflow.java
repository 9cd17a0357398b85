package dev.penstock.actors.precision;

/**
 * A step that was skipped because a gradient, or what led to it, was not finite.
 *
 * @param step that the data has gone past and the optimizer has not seen
 * @param rank the lowest that met it
 * @param stage the lowest of that rank's in which it was met
 * @param scale what the loss was multiplied by
 * @param next what that of the next step is multiplied by
 */
public record Overflow(long step, int rank, int stage, double scale, double next) {
    /** Returns it as a line for people. */
    public String words() {
        return "step %d skipped: overflow in rank %d, stage %d, with loss scale %s; the next step has %s"
                .formatted(step, rank, stage, plain(scale), plain(next));
    }

    private static String plain(double scale) {
        return "%.0f".formatted(scale);
    }
}
