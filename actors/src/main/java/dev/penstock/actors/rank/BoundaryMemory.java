package dev.penstock.actors.rank;

import dev.penstock.actors.collective.CollectiveLibrary;
import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.rank.BufferNeeds.Use;
import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.ir.Schedule;
import java.util.List;

/** Device memory of a rank's boundary tensors, known from its programs alone. */
public final class BoundaryMemory {
    private BoundaryMemory() {}

    /**
     * Bytes that a rank allocates for blocks of what it sums and gathers with others.
     *
     * @param homes by rank, the lowest rank that lives in the same process
     * @param staged whether links read other memory than the device's
     * @param library whether devices sum and gather by themselves
     */
    public static long collectiveBytes(
            int rank,
            RankGrid grid,
            List<Integer> homes,
            boolean staged,
            CollectiveLibrary library) {
        return RankGroups.slotBytes(rank, grid, homes, staged, library);
    }

    /**
     * Bytes that a rank allocates for receive slots, outputs and input gradients.
     *
     * @param tensorBytes bytes of the largest boundary tensor
     * @param sharedGradientElements elements of the gradient that stages share, 0 if they share
     *     none
     * @param keepsSent whether sent tensors are kept until they are verified
     * @param staged whether links read other memory than the device's
     */
    public static long bytes(
            int rank,
            RunPlan plan,
            long tensorBytes,
            long sharedGradientElements,
            boolean keepsSent,
            boolean staged) {
        var needs = BufferNeeds.of(rank, plan);
        var topology = new Topology(plan.training());
        long tensors = 0;
        for (int stage : plan.stagesOf(rank)) {
            tensors += needs.peak(stage, Use.OUTPUT) + needs.peak(stage, Use.INPUT_GRADIENT);
            if (stage > 0 && !topology.isLocal(stage - 1, stage)) {
                tensors +=
                        needs.slots(
                                        stage,
                                        Use.INPUT,
                                        credits(plan, BoundaryBuffers.activation(stage)))
                                + kept(plan, BoundaryBuffers.gradient(stage - 1), keepsSent);
            }
            if (!topology.isLast(stage) && !topology.isLocal(stage, stage + 1)) {
                tensors +=
                        needs.slots(
                                        stage,
                                        Use.OUTPUT_GRADIENT,
                                        credits(plan, BoundaryBuffers.gradient(stage)))
                                + kept(plan, BoundaryBuffers.activation(stage + 1), keepsSent);
            }
        }
        return tensors * tensorBytes
                + exchanges(plan.grid().placeOf(rank).pipeline(), plan.training())
                        * SharedGradientExchange.slotBytes(sharedGradientElements, staged);
    }

    /** Stages of this rank whose sharer is on another. */
    private static long exchanges(int rank, Schedule schedule) {
        Placement placement = schedule.placement();
        return schedule.sharedGroups().stream()
                .filter(group -> group.stream().anyMatch(s -> placement.rankOf(s) != rank))
                .flatMap(List::stream)
                .filter(stage -> placement.rankOf(stage) == rank)
                .count();
    }

    private static int kept(RunPlan plan, ChannelKey channel, boolean keepsSent) {
        return keepsSent ? credits(plan, channel) : 0;
    }

    private static int credits(RunPlan plan, ChannelKey channel) {
        return plan.inFlight().getOrDefault(channel, 0);
    }
}
