package dev.penstock.runtime.model;

import dev.penstock.actors.collective.Alone;
import dev.penstock.actors.collective.CollectiveGroup;
import dev.penstock.actors.collective.ShardMap;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;

/**
 * Attention of a part of every sequence, whose other parts lie on other ranks. Keys and values
 * travel to all parts, block by block of layers, and their gradients home, added in the order of
 * parts; queries stay:
 *
 * <pre>
 *   part 0   q0 | k0 v0 |                   forward: every part gets the keys and values before it
 *   part 1   q1 | k0 v0 | k1 v1 |           backward: gets them again, and dk dv of all parts are
 *   part 2   q2 | k0 v0 | k1 v1 | k2 v2 |   summed where k and v are
 * </pre>
 *
 * <p>The bits are those of token slices of the same lengths. The keys and values of whole sequences
 * are here for one block of the model at a time; all other activations are those of the part.
 */
final class ContextAttention implements Attention {
    private final Kernels kernels;
    private final ContextBuffers buffers;
    private final ShardMap map;
    private final int heads;
    private final int columns;
    private final int parts;
    private final int part;

    /** The rows of this part among those of whole sequences. */
    private final TokenBlocks own;

    private CollectiveGroup group = Alone.GROUP;

    ContextAttention(
            Kernels kernels,
            ShardShape shape,
            BatchShape batchOfPart,
            int parts,
            int part,
            ContextBuffers buffers) {
        this.kernels = kernels;
        this.buffers = buffers;
        this.parts = parts;
        this.part = part;
        heads = shape.heads();
        columns = shape.headColumns();
        map = new ShardMap(buffers.travelling().elements(), parts);
        int tokens = batchOfPart.context();
        own = new TokenBlocks(batchOfPart.sequences(), tokens, part * tokens, batchOfPart.grid());
    }

    void connect(CollectiveGroup context) {
        if (context.size() != parts || context.index() != part) {
            throw new IllegalArgumentException(
                    "expected to be context part %d of %d, got %d of %d"
                            .formatted(part, parts, context.index(), context.size()));
        }
        group = context;
    }

    @Override
    public int tokens() {
        return own.tokens();
    }

    @Override
    public void forward(Tensor qkv, LayerActivations a, TokenBlocks blocks) {
        gather(qkv);
        kernels.attention(
                buffers.whole(), a.attended(), a.logSumExp(), heads, parts * tokens(), own);
    }

    @Override
    public void backward(
            Tensor qkv, LayerActivations a, Tensor dAttended, Tensor dQkv, TokenBlocks blocks) {
        gather(qkv);
        kernels.zero(buffers.dWhole());
        kernels.attentionBackward(
                buffers.whole(),
                a.attended(),
                a.logSumExp(),
                dAttended,
                buffers.dWhole(),
                heads,
                parts * tokens(),
                own);
        for (int other = 0; other < parts; other++) {
            for (int sequence = 0; sequence < own.sequences(); sequence++) {
                kernels.copy(
                        keysAndValues(rows(buffers.dWhole(), other, sequence)),
                        travelling(other, sequence));
            }
        }
        group.await(group.reduceScatter(buffers.travelling(), map));
        for (int sequence = 0; sequence < own.sequences(); sequence++) {
            Tensor into = dQkv.rows(sequence * tokens(), tokens());
            kernels.copy(travelling(part, sequence), keysAndValues(into));
            kernels.copy(queries(rows(buffers.dWhole(), part, sequence)), queries(into));
        }
    }

    /** Brings the keys and values of all parts up to this one to where the kernel reads them. */
    private void gather(Tensor qkv) {
        for (int sequence = 0; sequence < own.sequences(); sequence++) {
            Tensor mine = qkv.rows(sequence * tokens(), tokens());
            kernels.copy(keysAndValues(mine), travelling(part, sequence));
            kernels.copy(queries(mine), queries(rows(buffers.whole(), part, sequence)));
        }
        group.await(group.allGather(buffers.travelling(), map));
        for (int other = 0; other <= part; other++) {
            for (int sequence = 0; sequence < own.sequences(); sequence++) {
                kernels.copy(
                        travelling(other, sequence),
                        keysAndValues(rows(buffers.whole(), other, sequence)));
            }
        }
    }

    private Tensor travelling(int other, int sequence) {
        return buffers.part(other, own.rows(), columns).rows(sequence * tokens(), tokens());
    }

    /** A part's rows of a sequence. */
    private Tensor rows(Tensor whole, int other, int sequence) {
        return whole.rows((sequence * parts + other) * tokens(), tokens());
    }

    private Tensor queries(Tensor qkv) {
        return qkv.columns(0, columns);
    }

    private Tensor keysAndValues(Tensor qkv) {
        return qkv.columns(columns, 2 * columns);
    }
}
