package dev.penstock.schedules.plan.work;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Costs and sizes of a unit on every rank, before the layers are cut into stages.
 *
 * @param sequences of a micro-batch
 * @param ranks entry r is rank r; ranks with equal hardware share theirs
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
     * @param slices entry s is slice s
     * @param blockNanos forward and backward of one block, all slices of a micro-batch
     * @param headNanos the same for the head
     * @param embeddingNanos the same for the embedding
     */
    public record RankWork(
            RankHardware hardware,
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
        Map<RankHardware, RankWork> known = new HashMap<>();
        var ranks = new ArrayList<RankWork>();
        for (RankHardware rank : hardware.ranks()) {
            ranks.add(
                    known.computeIfAbsent(
                            rank,
                            h ->
                                    rankWork(
                                            request,
                                            hardware.layout().tensor(),
                                            sequences,
                                            sliceLengths,
                                            recompute,
                                            h)));
        }
        return new PipelineWork(
                request, hardware, sequences, sliceLengths, recompute, List.copyOf(ranks));
    }

    private static RankWork rankWork(
            PlanRequest request,
            int tensor,
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
                            tensor,
                            (long) sequences * length,
                            request.model().meanContext(context, length),
                            recompute));
            context += length;
        }
        return new RankWork(
                hardware,
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

    /** What a unit keeps per block until its backward. */
    long keptPerBlock(int slice) {
        ModelShape model = request.model();
        return recompute
                ? UnitBytes.recomputed(
                        model, request.bytes(), layout().tensor(), tokens(slice), slices() > 1)
                : UnitBytes.kept(model, request.bytes(), layout().tensor(), tokens(slice));
    }

    /** What a unit keeps on a stage until its backward. */
    public long keptBytes(int slice, int blocks, boolean last) {
        // the last norm keeps its input
        long norm =
                last ? request.bytes().activation() * tokens(slice) * request.model().width() : 0;
        return blocks * keptPerBlock(slice) + norm;
    }

    /** Parameters of a stage that one device has a part or all of, depending on ZeRO. */
    long stageParameters(int blocks, boolean first, boolean last) {
        ModelShape model = request.model();
        long matrix = model.tied() && first ? 0 : model.headMatrixParameters();
        long all =
                blocks * model.blockParameters()
                        + (first ? model.embeddingParameters() : 0)
                        + (last ? model.lastNorm() + matrix : 0);
        return Math.ceilDiv(all, (long) layout().tensor());
    }

    /** Those of {@link #stageParameters} that are trained. */
    long trainedParameters(int blocks, boolean first, boolean last) {
        ModelShape model = request.model();
        boolean matrix = model.trainsHead() && !(model.tied() && first);
        long all =
                blocks * model.trainedOfBlock()
                        + (first ? model.trainedOfEmbedding() : 0)
                        + (last ? model.trainedOfLastNorm() : 0)
                        + (last && matrix ? model.headMatrixParameters() : 0);
        return Math.ceilDiv(all, (long) layout().tensor());
    }
}
