package dev.penstock.runtime.model.swap;

import dev.penstock.cuda.device.Tensor;

/** A dense row of numbers in mapped memory, which replicas exchange. */
public interface SwappedRow {
    Tensor tensor();

    /** The step after which it was sealed last; below 0 if it never was. */
    long step();

    /**
     * Declares the numbers valid after a step; durable when this returns.
     *
     * @param until the last step that may begin before they have been used
     */
    void seal(long step, long until);

    /** It is done with for now, and may leave the memory: whoever touches it brings it back. */
    void leave();
}
