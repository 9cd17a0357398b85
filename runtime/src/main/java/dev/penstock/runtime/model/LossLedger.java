package dev.penstock.runtime.model;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Targets and losses of every token of a step, in the order (micro-batch, sequence, token) whatever
 * the slicing, so that the mean does not depend on the order of work.
 */
final class LossLedger {
    private static final String PLACE = "loss";

    private final BatchShape batch;
    private final Tensor targets;
    private final Tensor losses;

    LossLedger(DeviceScope scope, BatchShape batch) {
        this.batch = batch;
        targets = scope.tensor("targets", DType.I32, 1, batch.tokensPerStep());
        losses = scope.tensor("losses", DType.F32, 1, batch.tokensPerStep());
    }

    /**
     * Takes the targets of a micro-batch.
     *
     * @param tokens {@code [B][T + 1]}
     */
    void fill(int microBatch, int[] tokens) {
        int context = batch.context();
        MemorySegment segment = targets.segment();
        for (int b = 0; b < batch.sequences(); b++) {
            MemorySegment.copy(
                    tokens,
                    b * (context + 1) + 1,
                    segment,
                    ValueLayout.JAVA_INT,
                    4L * index(microBatch, b, 0),
                    context);
        }
    }

    /** Losses of a chunk of a unit; logits become their gradient. */
    void crossEntropy(
            Compute compute, Tensor logits, int microBatch, HeadChunk chunk, float gradientScale) {
        TokenBlocks blocks = chunk.blocks();
        for (int b = 0; b < blocks.sequences(); b++) {
            int first = index(microBatch, chunk.firstSequence() + b, blocks.firstToken());
            Tensor sequenceLosses = losses.columns(first, blocks.tokens());
            compute.kernels()
                    .crossEntropy(
                            logits.rows(b * blocks.tokens(), blocks.tokens()),
                            targets.columns(first, blocks.tokens()),
                            sequenceLosses,
                            gradientScale);
            compute.guard().check(sequenceLosses, PLACE);
        }
    }

    /** Mean loss of the step's tokens. */
    double mean() {
        MemorySegment segment = losses.segment();
        int tokens = batch.tokensPerStep();
        double sum = 0;
        for (int i = 0; i < tokens; i++) {
            sum += segment.getAtIndex(ValueLayout.JAVA_FLOAT, i);
        }
        return sum / tokens;
    }

    private int index(int microBatch, int sequence, int token) {
        return (microBatch * batch.sequences() + sequence) * batch.context() + token;
    }
}
