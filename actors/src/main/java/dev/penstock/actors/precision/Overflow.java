package dev.penstock.actors.precision;

/**
 * A step that was skipped because a gradient, or what led to it, was not finite.
 *
 * @param step that the data has gone past and the optimizer has not seen
 * @param rank the lowest that met it; {@link #UNKNOWN} if the supervisor that knew it has been
 *     replaced
 * @param stage the lowest of that rank's in which it was met; likewise
 * @param scale what the loss was multiplied by
 * @param next what that of the next step is multiplied by
 */
public record Overflow(long step, int rank, int stage, double scale, double next) {
    /** No rank, or no stage. */
    public static final int UNKNOWN = -1;

    /** Returns that of which only the scales are known. */
    public static Overflow somewhere(long step, LossScaler scaler) {
        return new Overflow(step, UNKNOWN, UNKNOWN, scaler.scale(), scaler.after(true).scale());
    }

    /** Returns it as a line for people. */
    public String words() {
        String where = rank == UNKNOWN ? "" : " in rank %d, stage %d,".formatted(rank, stage);
        return "step %d skipped: overflow%s with loss scale %s; the next step has %s"
                .formatted(step, where, plain(scale), plain(next));
    }

    private static String plain(double scale) {
        return "%.0f".formatted(scale);
    }
}
