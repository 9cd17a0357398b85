package dev.penstock.schedules.plan;

import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.plan.work.DeviceSpec;
import dev.penstock.schedules.plan.work.Hardware;
import dev.penstock.schedules.plan.work.Layout;
import dev.penstock.schedules.plan.work.LayoutHardware;
import dev.penstock.schedules.plan.work.Link;
import dev.penstock.schedules.plan.work.ModelShape;
import dev.penstock.schedules.plan.work.NodeGroup;
import dev.penstock.schedules.plan.work.PipelineWork;
import dev.penstock.schedules.plan.work.PlanChoice;
import dev.penstock.schedules.plan.work.PlanRequest;
import dev.penstock.schedules.plan.work.TrainingBytes;
import dev.penstock.schedules.plan.work.ZeroStage;
import java.util.List;

/**
 * Hardware whose times are counts: a FLOP takes a nanosecond, and so does a byte of a device's
 * memory and of the links in a node. A byte between nodes takes two, plus seven for the first.
 */
public final class CountingHardware {
    public static final DeviceSpec DEVICE = new DeviceSpec(1L << 30, 2e9, 0.5, 1e9);
    public static final Link INSIDE = new Link(3, 1e9);
    public static final Link NETWORK = new Link(7, 0.5e9);

    /** 4 blocks of width 10 and 2 heads, 31 words, 20 tokens. */
    static final ModelShape MODEL = new ModelShape(4, 10, 2, 31, 20, true);

    /** All four are different. */
    public static final TrainingBytes BYTES = new TrainingBytes(2, 4, 12, 3);

    /** 12 h^2 + 13 h. */
    public static final long BLOCK_PARAMETERS = 12 * 100 + 13 * 10;

    /** Tokens and positions. */
    public static final long EMBEDDING_PARAMETERS = (31 + 20) * 10;

    /** The matrix that is the tokens' embedding, and the last norm. */
    public static final long HEAD_PARAMETERS = 31 * 10 + 2 * 10;

    private CountingHardware() {}

    public static Hardware cluster(int nodes, int devicesPerNode) {
        var group = new NodeGroup("box", nodes, devicesPerNode, DEVICE, INSIDE);
        return new Hardware("boxes", List.of(group), NETWORK);
    }

    public static PlanRequest request(Hardware cluster, int batch) {
        return new PlanRequest(MODEL, BYTES, cluster, batch);
    }

    /** Of whole sequences, one in a micro-batch. */
    public static PipelineWork work(Hardware cluster, Layout layout) {
        return work(cluster, layout, List.of(20));
    }

    public static PipelineWork work(Hardware cluster, Layout layout, List<Integer> sliceLengths) {
        return PipelineWork.of(
                request(cluster, layout.data()),
                LayoutHardware.of(cluster, layout),
                1,
                sliceLengths,
                false);
    }

    /** One stage per rank on nodes of one device, one sequence in a micro-batch. */
    static Candidate candidate(
            String kind,
            boolean split,
            int microBatches,
            List<Integer> sliceLengths,
            List<Integer> partition) {
        int ranks = partition.size();
        var layout = new Layout(ranks, 1, 1);
        Hardware cluster = cluster(ranks, 1);
        var work =
                PipelineWork.of(
                        request(cluster, microBatches),
                        LayoutHardware.of(cluster, layout),
                        1,
                        sliceLengths,
                        false);
        var choice =
                new PlanChoice(layout, ZeroStage.NONE, kind, 1, microBatches, sliceLengths, false);
        var cut = new Cut(work, microBatches, Placement.loop(ranks, 1), partition);
        return Candidate.of(
                choice, new PipelineShape(ranks, 1, microBatches, sliceLengths), cut, split);
    }

    /** A forward of one block: two FLOPs for each of 12 h^2 weights, 4 h for each token before. */
    public static long blockForward(int tokens, double meanContext) {
        return (long) tokens * (24 * 100 + Math.round(4 * 10 * meanContext));
    }

    /** Attention has two inputs to give gradients to. */
    public static long blockInput(int tokens, double meanContext) {
        return (long) tokens * (24 * 100 + Math.round(2 * 4 * 10 * meanContext));
    }

    public static long blockWeight(int tokens) {
        return 24L * 100 * tokens;
    }

    /** One product with the words' matrix. */
    public static long head(int tokens) {
        return 2L * 31 * 10 * tokens;
    }

    /** A row of the embedding for each token, three bytes a number. */
    public static long embedding(int tokens) {
        return 10L * 3 * tokens;
    }

    /** To the next node. */
    static long hop(int tokens) {
        return 7 + 2L * 10 * 3 * tokens;
    }
}
