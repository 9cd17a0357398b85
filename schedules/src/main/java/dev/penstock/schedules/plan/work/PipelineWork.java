package dev.penstock.schedules.plan.work;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Costs and sizes of a unit on every rank, before the layers are cut into stages.
 *
 * @param sequences of a micro-batch
 * @param ranks entry r is rank r; ranks with equal hardware and as many shards share theirs
 */
public record PipelineWork(
        PlanRequest request,
        LayoutHardware hardware,
        int sequences,
        List<Integer> sliceLengths,
        boolean recompute,
        List<RankWork> ranks) {

    /**
     * One rank's.
     *
     * @param shards of its matrices
     * @param slices entry s is slice s
     * @param blockNanos forward and backward of one block, all slices of a micro-batch
     * @param headNanos the same for the head
     * @param embeddingNanos the same for the embedding
     */
    public record RankWork(
            RankHardware hardware,
            int shards,
            List<BlockWork> slices,
            long blockNanos,
            long headNanos,
            long embeddingNanos) {}

    public static PipelineWork of(
            PlanRequest request,
            LayoutHardware hardware,
            int sequences,
            List<Integer> sliceLengths,
            boolean recompute) {
        record Equal(RankHardware hardware, int shards) {}
        Map<Equal, RankWork> known = new HashMap<>();
        var ranks = new ArrayList<RankWork>();
        for (int rank = 0; rank < hardware.ranks().size(); rank++) {
            ranks.add(
                    known.computeIfAbsent(
                            new Equal(hardware.ranks().get(rank), hardware.layout().shardsOf(rank)),
                            equal ->
                                    rankWork(
                                            request,
                                            equal.shards(),
                                            sequences,
                                            sliceLengths,
                                            recompute,
                                            equal.hardware())));
        }
        return new PipelineWork(
                request, hardware, sequences, sliceLengths, recompute, List.copyOf(ranks));
    }

    private static RankWork rankWork(
            PlanRequest request,
            int shards,
            int sequences,
            List<Integer> sliceLengths,
            boolean recompute,
            RankHardware hardware) {
        var slices = new ArrayList<BlockWork>();
        int context = 0;
        for (int length : sliceLengths) {
            slices.add(
                    BlockWork.of(
                            request.model(),
                            request.bytes(),
                            hardware,
                            shards,
                            (long) sequences * length,
                            request.model().meanContext(context, length),
                            recompute));
            context += length;
        }
        return new RankWork(
                hardware,
                shards,
                List.copyOf(slices),
                slices.stream()
                        .mapToLong(s -> s.forward() + s.backwardInput() + s.backwardWeight())
                        .sum(),
                slices.stream().mapToLong(s -> 2 * s.head() + s.headWeight()).sum(),
                slices.stream().mapToLong(s -> s.embedding() + s.embeddingWeight()).sum());
    }

    Layout layout() {
        return hardware.layout();
    }

    public int slices() {
        return sliceLengths.size();
    }

    /** Tokens of a slice in all sequences of a micro-batch. */
    long tokens(int slice) {
        return (long) sequences * sliceLengths.get(slice);
    }

    int longestSlice() {
        int longest = 0;
        for (int slice = 1; slice < slices(); slice++) {
            if (sliceLengths.get(slice) > sliceLengths.get(longest)) {
                longest = slice;
            }
        }
        return longest;
    }

    /** Forward and backward of a micro-batch on one stage. */
    public long stageNanos(int rank, int blocks, boolean first, boolean last) {
        RankWork work = ranks.get(rank);
        return blocks * work.blockNanos()
                + (first ? work.embeddingNanos() : 0)
                + (last ? work.headNanos() : 0);
    }

    /** What a unit keeps per block of a rank until its backward. */
    long keptPerBlock(int rank, int slice) {
        int shards = ranks.get(rank).shards();
        ModelShape model = request.model();
        return recompute
                ? UnitBytes.recomputed(model, request.bytes(), shards, tokens(slice), slices() > 1)
                : UnitBytes.kept(model, request.bytes(), shards, tokens(slice));
    }

    /** What a unit keeps on a stage of a rank until its backward. */
    public long keptBytes(int rank, int slice, int blocks, boolean last) {
        // the last norm keeps its input
        long norm =
                last ? request.bytes().activation() * tokens(slice) * request.model().width() : 0;
        return blocks * keptPerBlock(rank, slice) + norm;
    }

    /** Parameters of a rank's stage that one device has a part or all of, depending on ZeRO. */
    long stageParameters(int rank, int blocks, boolean first, boolean last) {
        ModelShape model = request.model();
        long matrix = model.tied() && first ? 0 : model.headMatrixParameters();
        long all =
                blocks * model.blockParameters()
                        + (first ? model.embeddingParameters() : 0)
                        + (last ? model.lastNorm() + matrix : 0);
        return Math.ceilDiv(all, (long) ranks.get(rank).shards());
    }

    /** Those of {@link #stageParameters} that are trained. */
    long trainedParameters(int rank, int blocks, boolean first, boolean last) {
        return trainedParameters(rank, blocks, first, last, hasMatrix(first, last));
    }

    /** Whether a stage trains a matrix of the logits that is not its table of tokens. */
    boolean hasMatrix(boolean first, boolean last) {
        ModelShape model = request.model();
        return last && model.trainsHead() && !(model.tied() && first);
    }

    /** Those of a part of a stage. */
    long trainedParameters(int rank, int blocks, boolean tables, boolean lastNorm, boolean matrix) {
        ModelShape model = request.model();
        long all =
                blocks * model.trainedOfBlock()
                        + (tables ? model.trainedOfEmbedding() : 0)
                        + (lastNorm ? model.trainedOfLastNorm() : 0)
                        + (matrix ? model.headMatrixParameters() : 0);
        return Math.ceilDiv(all, (long) ranks.get(rank).shards());
    }
}
