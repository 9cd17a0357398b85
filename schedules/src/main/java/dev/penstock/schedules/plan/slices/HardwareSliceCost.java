package dev.penstock.schedules.plan.slices;

import dev.penstock.schedules.plan.work.BlockWork;
import dev.penstock.schedules.plan.work.Layout;
import dev.penstock.schedules.plan.work.LayoutHardware;
import dev.penstock.schedules.plan.work.Link;
import dev.penstock.schedules.plan.work.PlanRequest;
import dev.penstock.schedules.plan.work.UnitBytes;
import java.util.List;

/**
 * What a token slice costs on described hardware: t(i, j) of the slowest stage, forward and
 * backward, with its tensor's way to the next stage and its gradient's way back (TeraPipe, arXiv
 * 2102.07988, section 3.3, "twice the communication"). {@link BlockWork} is the law.
 */
public final class HardwareSliceCost implements SliceCost {
    private final PlanRequest request;
    private final LayoutHardware hardware;
    private final List<Integer> partition;
    private final int sequences;

    private HardwareSliceCost(
            PlanRequest request, LayoutHardware hardware, List<Integer> partition, int sequences) {
        this.request = request;
        this.hardware = hardware;
        this.partition = List.copyOf(partition);
        this.sequences = sequences;
    }

    /**
     * What slices cost on the slowest stage of a layout.
     *
     * @param partition blocks of each stage; stage s is on rank s mod the layout's ranks
     * @param sequences of a micro-batch
     */
    public static HardwareSliceCost of(
            PlanRequest request, Layout layout, List<Integer> partition, int sequences) {
        return new HardwareSliceCost(
                request, LayoutHardware.of(request.cluster(), layout), partition, sequences);
    }

    @Override
    public long nanos(int length, int context) {
        long slowest = 0;
        for (int stage = 0; stage < partition.size(); stage++) {
            slowest = Math.max(slowest, ofStage(stage, length, context));
        }
        return slowest;
    }

    private long ofStage(int stage, int length, int context) {
        Layout layout = hardware.layout();
        int rank = stage % layout.pipeline();
        long tokens = (long) sequences * length;
        BlockWork block =
                BlockWork.of(
                        request.model(),
                        request.bytes(),
                        hardware.ranks().get(rank),
                        layout.shardsOf(rank),
                        tokens,
                        request.model().meanContext(context, length),
                        false);
        long ends =
                (stage == 0 ? block.embedding() + block.embeddingWeight() : 0)
                        + (stage == partition.size() - 1
                                ? 2 * block.head() + block.headWeight()
                                : 0);
        return partition.get(stage)
                        * (block.forward() + block.backwardInput() + block.backwardWeight())
                + ends
                + ways(stage, tokens);
    }

    /** To the next stage and back; the last one's way is that from the stage before. */
    private long ways(int stage, long tokens) {
        if (partition.size() == 1) {
            return 0;
        }
        int sender = Math.min(stage, partition.size() - 2);
        Layout layout = hardware.layout();
        int from = sender % layout.pipeline();
        int to = (from + 1) % layout.pipeline();
        long bytes =
                UnitBytes.hop(request.model(), request.bytes(), layout.boundaryParts(), tokens);
        Link link = hardware.hops().get(from);
        return nanos(link, bytes * layout.copies(from, to))
                + nanos(link, bytes * layout.copies(to, from));
    }

    private static long nanos(Link link, long bytes) {
        return link.latencyNanos() + Math.round(link.nanos((double) bytes));
    }
}
