package dev.penstock.schedules.plan.work;

import dev.penstock.schedules.ir.Placement;
import java.util.List;

/**
 * Bytes that a device of a rank needs.
 *
 * @param state parameters, gradients and optimizer
 * @param activations of the units in flight
 * @param working what is there for a moment: gathered parameters, a recomputed block, logits,
 *     tensors on their way
 * @param capacity what the device has
 */
public record RankMemory(int rank, long state, long activations, long working, long capacity) {

    /** All of it. */
    public long bytes() {
        return state + activations + working;
    }

    /** How much is missing; 0 or less if it fits. */
    public long excess() {
        return bytes() - capacity;
    }

    /**
     * A rank's.
     *
     * @param activations at the peak
     */
    public static RankMemory of(
            PipelineWork work,
            List<Integer> partition,
            Placement placement,
            ZeroStage zero,
            int rank,
            long activations) {
        int last = partition.size() - 1;
        long state = 0;
        long working = 0;
        for (int stage = 0; stage <= last; stage++) {
            if (placement.holds(rank, stage)) {
                int blocks = partition.get(stage);
                state += state(work, zero, rank, blocks, stage == 0, stage == last);
                working =
                        Math.max(
                                working,
                                working(work, zero, rank, blocks, stage == 0, stage == last));
            }
        }
        long capacity = work.ranks().get(rank).hardware().memoryBytes();
        return new RankMemory(rank, state, activations, working, capacity);
    }

    public static long state(
            PipelineWork work, ZeroStage zero, int rank, int blocks, boolean first, boolean last) {
        return zero.bytes(
                work.stageParameters(rank, blocks, first, last),
                work.trainedParameters(rank, blocks, first, last),
                work.request().bytes(),
                work.layout().data());
    }

    public static long working(
            PipelineWork work, ZeroStage zero, int rank, int blocks, boolean first, boolean last) {
        ModelShape model = work.request().model();
        TrainingBytes bytes = work.request().bytes();
        int shards = work.ranks().get(rank).shards();
        long tokens = work.tokens(work.longestSlice());
        long block = blocks == 0 ? 0 : Math.ceilDiv(model.blockParameters(), (long) shards);
        long matrix = first || last ? Math.ceilDiv(model.headMatrixParameters(), (long) shards) : 0;
        // the block in use and the next one
        long gathered =
                zero.dividesParameters() ? bytes.parameter() * Math.max(2 * block, matrix) : 0;
        long trained = blocks == 0 ? 0 : Math.ceilDiv(model.trainedOfBlock(), (long) shards);
        long trainedMatrix = model.trainsHead() ? matrix : 0;
        long gradients =
                zero.dividesGradients() ? bytes.gradient() * Math.max(trained, trainedMatrix) : 0;
        long again = work.recompute() ? UnitBytes.kept(model, bytes, shards, tokens) : 0;
        // logits and their gradient in fp32
        long logits = last ? 4 * Math.ceilDiv(tokens * model.vocabulary(), (long) shards) : 0;
        long contextGradients = work.slices() == 1 ? 0 : contextGradients(work, shards, blocks);
        // one tensor each way that is used, and one that arrives meanwhile
        long transfers = 4 * UnitBytes.hop(model, bytes, work.layout().boundaryParts(), tokens);
        return gathered + gradients + again + logits + contextGradients + transfers;
    }

    /** Gradients of keys and values, to which later slices add. */
    private static long contextGradients(PipelineWork work, int shards, int blocks) {
        ModelShape model = work.request().model();
        long tokens = (long) work.sequences() * model.sequence();
        return blocks
                * Math.ceilDiv(
                        UnitBytes.keysAndValues(model, work.request().bytes(), tokens),
                        (long) shards);
    }
}
