package dev.penstock.runtime.model.layers;

import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.RetentionShape;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.runtime.model.activations.LayerActivations;
import dev.penstock.runtime.model.shape.FeedRows;
import java.util.function.Supplier;

/**
 * Retention of one block during inference: tokens of several texts, each behind the state of its
 * own text, whose size does not depend on the text's length.
 *
 * @param epsilon of the norms of heads
 * @param grid of chunks
 * @param rows of the current unit
 * @param kept the state of each text in flight, in row {@code text % rows}: numbers of texts rise
 * @param chunks room for the states of one run of rows: before each chunk and behind the last
 */
public record TextRetention(
        Kernels kernels,
        RetentionShape shape,
        double epsilon,
        int grid,
        Supplier<FeedRows> rows,
        Tensor kept,
        Tensor chunks)
        implements Attention {

    /**
     * Returns the rows of {@link #chunks}.
     *
     * @param rows of the longest run
     */
    public static int chunkRows(int rows, int grid) {
        return (rows + grid - 2) / grid + 2;
    }

    /**
     * @param qkv of the unit's rows
     */
    @Override
    public void forward(Tensor qkv, LayerActivations a, TokenBlocks blocks) {
        for (FeedRows.Run run : rows.get().runs()) {
            int first = run.firstRow();
            int count = run.feed().count();
            var own = new TokenBlocks(1, count, run.feed().place(), grid);
            Tensor states = chunks.rows(0, own.blocksPerSequence() + 1);
            Tensor state = kept.rows(run.text() % kept.rows(), 1);
            if (run.feed().place() == 0) {
                kernels.zero(state);
            }
            kernels.copy(state, states.rows(0, 1));
            Tensor of = qkv.rows(first, count);
            kernels.retentionStates(of, states, shape, count, own);
            kernels.copy(states.rows(own.blocksPerSequence(), 1), state);
            kernels.retention(of, states, a.attended().rows(first, count), shape, count, own);
        }
        Tensor here = qkv.rows(0, a.attended().rows());
        kernels.gatedHeadNorm(
                a.attended(),
                shape.gated() ? here.columns(shape.firstGate(), shape.valueColumns()) : null,
                a.attendedFactor(),
                a.logSumExp(),
                epsilon);
    }

    @Override
    public void backward(
            Tensor qkv, LayerActivations a, Tensor dAttended, Tensor dQkv, TokenBlocks blocks) {
        throw new UnsupportedOperationException("inference runs forward only");
    }
}
