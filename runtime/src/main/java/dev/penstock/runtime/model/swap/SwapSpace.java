package dev.penstock.runtime.model.swap;

import dev.penstock.cuda.device.DType;
import dev.penstock.runtime.model.shape.OptimizerState;
import dev.penstock.runtime.model.shape.SwapCommit;

/**
 * Where the groups of a stage lie while they are not in the device's memory. The rank's thread
 * only.
 */
public interface SwapSpace extends AutoCloseable {
    /**
     * Makes room for a group, zero, or finds what an earlier process left of it.
     *
     * @param name of the group, the only one in the stage
     * @param form of its moments
     */
    SwappedGroup group(String name, long elements, OptimizerState form);

    /**
     * Makes room for a row that belongs to no group, zero, or finds what an earlier process left of
     * it.
     *
     * @param name of the row, the only one in the stage
     */
    SwappedRow row(String name, DType type, long columns);

    /** All groups have their first values: from now on the next process may find them. */
    void complete();

    /** An update is about to change the groups; durable when this returns. */
    void commit(SwapCommit update);

    /** Bytes of all groups and rows, gradients among them. */
    long bytes();

    /** Nanoseconds that loads have taken so far. */
    default long loadNanos() {
        return 0;
    }

    /** Nanoseconds that complete gradients have taken so far to leave the memory. */
    default long leaveNanos() {
        return 0;
    }

    /** Lets go of the files, which stay. */
    @Override
    void close();
}
