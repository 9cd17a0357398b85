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
     * @param rows of the largest boundary tensor
     * @param columns of every boundary tensor
     * @param rowsOfStep of all boundary tensors of a kind in a training step
     * @param sharedGradientElements elements of the gradient that stages share, 0 if they share
     *     none
     * @param keepsSent whether sent tensors are kept until they are verified
     * @param staged whether links read other memory than the device's
     */
    public static long bytes(
            int rank,
            RunPlan plan,
            int rows,
            int columns,
            long rowsOfStep,
            long sharedGradientElements,
            boolean keepsSent,
            boolean staged) {
        var needs = BufferNeeds.of(rank, plan);
        var topology = new Topology(plan.training());
        var sizes = new Sizes(plan, rows, columns, keepsSent);
        long bytes = 0;
        for (int stage : plan.stagesOf(rank)) {
            boolean takes = stage > 0 && !topology.isLocal(stage - 1, stage);
            boolean sends = !topology.isLast(stage) && !topology.isLocal(stage, stage + 1);
            int outputs = needs.peak(stage, Use.OUTPUT);
            int gradients = needs.peak(stage, Use.INPUT_GRADIENT);
            bytes +=
                    sends
                            ? sizes.sent(BoundaryBuffers.activation(stage + 1), outputs)
                            : outputs * sizes.whole();
            bytes +=
                    takes && topology.passesGradient(stage)
                            ? sizes.sent(BoundaryBuffers.gradient(stage - 1), gradients)
                            : gradients * sizes.whole();
            if (takes) {
                bytes += sizes.received(needs, BoundaryBuffers.activation(stage), Use.INPUT);
            }
            if (sends && topology.hasBackward(stage)) {
                bytes +=
                        sizes.received(needs, BoundaryBuffers.gradient(stage), Use.OUTPUT_GRADIENT);
            }
        }
        long lost = EncodingLosses.sending(plan, plan.stagesOf(rank)).size() * 2L;
        return bytes
                + lost * rowsOfStep * columns * Float.BYTES
                + exchanges(plan.grid().placeOf(rank).pipeline(), plan.training())
                        * SharedGradientExchange.slotBytes(sharedGradientElements, staged);
    }

    /** The memory of channels, as {@link BoundaryBuffers} takes it. */
    private record Sizes(RunPlan plan, int rows, int columns, boolean keepsSent) {
        long whole() {
            return (long) rows * columns * Float.BYTES;
        }

        long sent(ChannelKey channel, int peak) {
            int kept = keepsSent ? credits(plan, channel) : 0;
            long coded = plan.codecs().of(channel).isPresent() ? Math.min(1, peak) * whole() : 0;
            return (peak + kept) * plan.codecs().bytes(channel, rows, columns) + coded;
        }

        long received(BufferNeeds needs, ChannelKey channel, Use use) {
            int credits = credits(plan, channel);
            boolean coded = plan.codecs().of(channel).isPresent();
            int slots = coded ? credits : needs.slots(channel.stage(), use, credits);
            return slots * plan.codecs().bytes(channel, rows, columns)
                    + (coded ? needs.peak(channel.stage(), use) * whole() : 0);
        }
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

    private static int credits(RunPlan plan, ChannelKey channel) {
        return plan.inFlight().getOrDefault(channel, 0);
    }
}
