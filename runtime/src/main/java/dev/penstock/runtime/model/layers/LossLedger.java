package dev.penstock.runtime.model.layers;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.cuda.device.TokenRange;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.HeadChunk;
import dev.penstock.runtime.model.shape.MicroBatchRows;
import dev.penstock.runtime.model.shape.ShardShape;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Targets and losses of every token of a step, in the order (micro-batch, sequence, token) whatever
 * the slicing, so that the mean does not depend on the order of execution.
 */
public final class LossLedger {
    private static final String PLACE = "loss";

    private final BatchShape batch;
    private final Tensor targets;
    private final Tensor losses;

    /** Three numbers for every row of a chunk and every shard of the vocabulary. */
    private final Tensor parts;

    private final TokenRange range;
    private final int shard;
    private int sequences;
    private double meanOver;

    public LossLedger(DeviceScope scope, ShardShape shape, BatchShape batch) {
        this.batch = batch;
        range = shape.range();
        shard = shape.index();
        targets = scope.tensor("targets", DType.I32, 1, batch.tokensPerStep());
        losses = scope.tensor("losses", DType.F32, 1, batch.tokensPerStep());
        parts =
                scope.tensor(
                        "softmax of all shards",
                        DType.F32,
                        shape.shards(),
                        TensorShards.gatheredColumns(3 * LossHead.logitsRows(shape, batch)));
    }

    /**
     * A step begins.
     *
     * @param here number of sequences of this replica that exist, the first ones of its
     *     micro-batches
     * @param tokens the divisor of the mean: the average number of tokens of replicas and parts, so
     *     that the mean of their means is the mean over all tokens
     */
    public void begin(int here, double tokens) {
        sequences = here;
        meanOver = tokens;
    }

    private boolean isHere(int microBatch, HeadChunk chunk, int b) {
        return microBatch * batch.sequences() + chunk.firstSequence() + b < sequences;
    }

    /**
     * Takes the targets of a micro-batch.
     *
     * @param tokens {@code [B][T]}
     */
    public void fill(int microBatch, int[] tokens) {
        MemorySegment.copy(
                tokens,
                0,
                targets.segment(),
                ValueLayout.JAVA_INT,
                4L * index(microBatch, 0, 0),
                batch.microBatchRows());
    }

    /**
     * Computes the losses of a chunk of a unit; logits become their gradient. Sequences that do not
     * exist have none.
     */
    void crossEntropy(
            Compute compute, Tensor logits, int microBatch, HeadChunk chunk, float gradientScale) {
        Tensor ofChunk = parts(chunk.rows());
        Tensor own = ofChunk.rows(shard, 1);
        for (int b = 0; b < chunk.blocks().sequences(); b++) {
            compute.kernels()
                    .softmaxPart(
                            of(logits, chunk, b),
                            of(targets, microBatch, chunk, b),
                            range,
                            numbers(own, chunk, b),
                            gradientScale != 0);
        }
        compute.shards().show(ofChunk);
        for (int b = 0; b < chunk.blocks().sequences(); b++) {
            Tensor sequenceLosses = of(losses, microBatch, chunk, b);
            if (!isHere(microBatch, chunk, b)) {
                compute.kernels().zero(sequenceLosses);
                compute.kernels().zero(of(logits, chunk, b));
                continue;
            }
            compute.kernels()
                    .crossEntropy(
                            numbers(ofChunk, chunk, b),
                            shard,
                            of(logits, chunk, b),
                            of(targets, microBatch, chunk, b),
                            range,
                            sequenceLosses,
                            gradientScale);
            compute.guard().check(sequenceLosses, PLACE);
        }
    }

    /** Returns dense rows, one per shard, for three numbers of each row of logits. */
    private Tensor parts(int rows) {
        int columns = TensorShards.gatheredColumns(3 * rows);
        return new Tensor(parts.buffer(), 0, DType.F32, parts.rows(), columns, columns);
    }

    private static Tensor numbers(Tensor parts, HeadChunk chunk, int b) {
        int tokens = chunk.blocks().tokens();
        return parts.columns(3 * b * tokens, 3 * tokens);
    }

    private static Tensor of(Tensor logits, HeadChunk chunk, int b) {
        return MicroBatchRows.inUnit(logits, chunk.blocks(), b);
    }

    private Tensor of(Tensor ofStep, int microBatch, HeadChunk chunk, int b) {
        TokenBlocks blocks = chunk.blocks();
        int first = index(microBatch, chunk.firstSequence() + b, blocks.firstToken());
        return ofStep.columns(first, blocks.tokens());
    }

    /** Returns the mean loss of the tokens that exist, see {@link #begin}. */
    public double mean() {
        MemorySegment segment = losses.segment();
        int tokens = batch.tokensPerStep();
        double sum = 0;
        for (int i = 0; i < tokens; i++) {
            sum += segment.getAtIndex(ValueLayout.JAVA_FLOAT, i);
        }
        return sum / meanOver;
    }

    private int index(int microBatch, int sequence, int token) {
        return (microBatch * batch.sequences() + sequence) * batch.context() + token;
    }
}
