package dev.penstock.actors.spi;

import dev.penstock.schedules.ir.WorkUnit;

/** A NaN or an infinity, caught where it appeared. */
public final class NonFiniteException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final long step;

    /**
     * @param place the layer and tensor, such as {@code h.3 attention output (forward)}
     */
    public NonFiniteException(long step, WorkUnit unit, String place) {
        super(
                "step %d, stage %d, micro-batch %d, slice %d: %s is not finite; try a lower learning rate or a longer warm-up"
                        .formatted(step, unit.stage(), unit.microBatch(), unit.slice(), place));
        this.step = step;
    }

    public long step() {
        return step;
    }
}
