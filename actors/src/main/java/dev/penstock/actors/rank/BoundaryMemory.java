package dev.penstock.actors.rank;

import dev.penstock.actors.collective.CollectiveLibrary;
import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.rank.BufferNeeds.Use;
import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.ir.Schedule;
import java.util.List;

/** The device memory of a rank's boundary tensors, which follows from its programs alone. */
public final class BoundaryMemory {
    private BoundaryMemory() {}

    /**
     * Returns the bytes that a rank allocates for the blocks of its sums and gathers with other
     * ranks.
     *
     * @param homes for each rank, the lowest rank that lives in the same process
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
     * Returns the bytes that a rank allocates for receive slots, outputs and input gradients.
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
                                stage, Use.INPUT, credits(plan, BoundaryBuffers.activation(stage)));
                tensors +=
                        topology.passesGradient(stage)
                                ? kept(plan, BoundaryBuffers.gradient(stage - 1), keepsSent)
                                : 0;
            }
            if (!topology.isLast(stage) && !topology.isLocal(stage, stage + 1)) {
                tensors += kept(plan, BoundaryBuffers.activation(stage + 1), keepsSent);
                tensors +=
                        topology.hasBackward(stage)
                                ? needs.slots(
                                        stage,
                                        Use.OUTPUT_GRADIENT,
                                        credits(plan, BoundaryBuffers.gradient(stage)))
                                : 0;
            }
        }
        return tensors * tensorBytes
                + exchanges(plan.grid().placeOf(rank).pipeline(), plan.training())
                        * SharedGradientExchange.slotBytes(sharedGradientElements, staged);
    }

    /** Returns the stages of this rank that share a gradient with a stage of another rank. */
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
