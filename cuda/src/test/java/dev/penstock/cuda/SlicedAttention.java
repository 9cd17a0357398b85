package dev.penstock.cuda;

import dev.penstock.cuda.device.AttentionShape;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;

/** Attention forward slice by slice, then backward in reverse order, as a pipeline does it. */
final class SlicedAttention {
    private final Device device;
    private final DType multiply;
    private final Tensor qkv;
    private final Tensor dy;
    private final Tensor y;
    private final Tensor dQkv;
    private final AttentionShape shape;
    private final int context;
    private final int sequences;

    /**
     * @param qkv of whole sequences
     * @param dy of whole sequences
     */
    SlicedAttention(Device device, DType multiply, Tensor qkv, Tensor dy, int heads, int context) {
        this(device, multiply, qkv, dy, AttentionShape.dense(heads, dy.columns()), context);
    }

    SlicedAttention(
            Device device,
            DType multiply,
            Tensor qkv,
            Tensor dy,
            AttentionShape shape,
            int context) {
        this.device = device;
        this.multiply = multiply;
        this.qkv = qkv;
        this.dy = dy;
        this.shape = shape;
        this.context = context;
        this.sequences = qkv.rows() / context;
        this.y = tensor(dy.rows(), dy.columns());
        this.dQkv = tensor(qkv.rows(), qkv.columns());
    }

    private Tensor tensor(int rows, int columns) {
        return device.memory().tensor("sliced", DType.F32, rows, columns);
    }

    Tensor y() {
        return y;
    }

    Tensor dQkv() {
        return dQkv;
    }

    void run(int grid, int... slices) {
        Tensor[] ys = new Tensor[slices.length];
        Tensor[] logSumExps = new Tensor[slices.length];
        int first = 0;
        for (int s = 0; s < slices.length; s++) {
            TokenBlocks blocks = new TokenBlocks(sequences, slices[s], first, grid);
            ys[s] = tensor(blocks.rows(), dy.columns());
            logSumExps[s] = tensor(blocks.rows(), shape.heads());
            device.kernels().attention(multiply, qkv, ys[s], logSumExps[s], shape, context, blocks);
            move(ys[s], y, blocks, true);
            first += slices[s];
        }
        for (int s = slices.length - 1; s >= 0; s--) {
            first -= slices[s];
            TokenBlocks blocks = new TokenBlocks(sequences, slices[s], first, grid);
            Tensor part = tensor(blocks.rows(), dy.columns());
            move(part, dy, blocks, false);
            device.kernels()
                    .attentionBackward(
                            multiply,
                            qkv,
                            ys[s],
                            logSumExps[s],
                            part,
                            dQkv,
                            shape,
                            context,
                            blocks);
        }
    }

    /** Between rows of a unit and the same tokens of whole sequences. */
    private void move(Tensor unit, Tensor whole, TokenBlocks blocks, boolean toWhole) {
        for (int b = 0; b < sequences; b++) {
            Tensor inUnit = unit.rows(b * blocks.tokens(), blocks.tokens());
            Tensor inWhole = whole.rows(b * context + blocks.firstToken(), blocks.tokens());
            if (toWhole) {
                device.kernels().copy(inUnit, inWhole);
            } else {
                device.kernels().copy(inWhole, inUnit);
            }
        }
    }
}
