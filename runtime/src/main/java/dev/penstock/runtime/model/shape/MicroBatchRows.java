package dev.penstock.runtime.model.shape;

import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;

/**
 * The places of a unit's rows in a tensor of the whole micro-batch (row {@code b*T + t}). With one
 * sequence, or uncut sequences, they are contiguous; otherwise each sequence has its own run.
 */
public final class MicroBatchRows {
    private MicroBatchRows() {}

    public static boolean adjacent(Tensor microBatch, TokenBlocks unit) {
        return unit.sequences() == 1 || unit.tokens() == tokens(microBatch, unit);
    }

    /** Returns how many tokens of each sequence the tensor has. */
    public static int tokens(Tensor microBatch, TokenBlocks unit) {
        return microBatch.rows() / unit.sequences();
    }

    /** Returns all rows of a unit whose rows are {@link #adjacent}. */
    public static Tensor of(Tensor microBatch, TokenBlocks unit) {
        return microBatch.rows(unit.firstToken(), unit.rows());
    }

    /** Returns the rows of one sequence of a unit. */
    public static Tensor of(Tensor microBatch, TokenBlocks unit, int sequence) {
        int first = sequence * tokens(microBatch, unit) + unit.firstToken();
        return microBatch.rows(first, unit.tokens());
    }

    /** Returns the rows of one sequence in the unit's own tensors. */
    public static Tensor inUnit(Tensor tensor, TokenBlocks unit, int sequence) {
        return tensor.rows(sequence * unit.tokens(), unit.tokens());
    }

    /** Copies the rows of a unit into a tensor of the micro-batch. */
    public static void scatter(Kernels kernels, Tensor rows, TokenBlocks unit, Tensor microBatch) {
        if (adjacent(microBatch, unit)) {
            kernels.copy(rows, of(microBatch, unit));
            return;
        }
        for (int b = 0; b < unit.sequences(); b++) {
            kernels.copy(inUnit(rows, unit, b), of(microBatch, unit, b));
        }
    }

    /** Copies the rows of a unit out of a tensor of the micro-batch. */
    public static void gather(Kernels kernels, Tensor microBatch, TokenBlocks unit, Tensor into) {
        for (int b = 0; b < unit.sequences(); b++) {
            kernels.copy(of(microBatch, unit, b), inUnit(into, unit, b));
        }
    }
}
