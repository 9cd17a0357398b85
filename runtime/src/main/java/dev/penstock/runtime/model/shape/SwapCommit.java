package dev.penstock.runtime.model.shape;

import java.util.List;

/**
 * An update that was committed: files after the update before it follow from their gradients and
 * this.
 *
 * @param clipFactor by which every gradient of the step is multiplied
 * @param before the step of the update before it; the steps between overflowed
 * @param skipped how many earlier steps the optimizer has not seen because they overflowed
 * @param overflows those of them that came after the checkpoint from which the run began, rising
 */
public record SwapCommit(
        long step, double clipFactor, long before, long skipped, List<Long> overflows) {
    public SwapCommit {
        overflows = List.copyOf(overflows);
    }

    /** An update after one of the step before it, where no step ever overflowed. */
    public SwapCommit(long step, double clipFactor) {
        this(step, clipFactor, step - 1, 0, List.of());
    }
}
