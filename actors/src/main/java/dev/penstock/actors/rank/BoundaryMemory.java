package dev.penstock.actors.rank;

import dev.penstock.actors.collective.CollectiveLibrary;
import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.rank.BufferNeeds.Made;
import dev.penstock.actors.spi.RunPlan;
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
     * @param beside whether a stage of the rank runs both ops of a pair at a time
     */
    public static long collectiveBytes(
            int rank,
            RunPlan plan,
            List<Integer> homes,
            boolean staged,
            CollectiveLibrary library,
            boolean beside) {
        return RankGroups.slotBytes(rank, plan, homes, staged, library, beside);
    }

    /**
     * Returns the bytes that a rank allocates for receive slots, outputs and input gradients, and
     * for what its ends of links keep from step to step.
     *
     * @param rows of the largest boundary tensor
     * @param columns of every boundary tensor
     * @param rowsOfSequence of all boundary tensors of a kind and a sequence, at most
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
            int rowsOfSequence,
            long rowsOfStep,
            long sharedGradientElements,
            boolean keepsSent,
            boolean staged) {
        var needs = BufferNeeds.of(rank, plan);
        var sizes = new Sizes(plan, needs, rows, columns, keepsSent);
        long bytes = needs.inbound().stream().mapToLong(sizes::received).sum();
        for (Made made : Made.values()) {
            bytes += needs.peakInHouse(plan.stagesOf(rank), made) * sizes.whole();
            for (int stage : plan.stagesOf(rank)) {
                bytes += sizes.sent(stage, made);
            }
        }
        return bytes
                + kept(rank, plan, columns, rowsOfSequence, rowsOfStep).bytes()
                + SharedGradientExchange.slotBytes(rank, plan, sharedGradientElements, staged);
    }

    /**
     * Returns what a rank's ends of links keep from step to step. Its mirror has the same.
     *
     * @param columns of every boundary tensor
     * @param rowsOfSequence as {@link #bytes} has it
     * @param rowsOfStep as {@link #bytes} has it
     */
    public static Kept kept(
            int rank, RunPlan plan, int columns, int rowsOfSequence, long rowsOfStep) {
        List<Integer> stages = plan.stagesOf(rank);
        long sending = EncodingLosses.sending(plan, stages).size();
        long ends = ActivationDeltas.ends(plan, stages);
        long sequences = rowsOfStep / rowsOfSequence;
        long ofStep = rowsOfStep * columns;
        long known = (long) plan.codecs().deltaRows() * rowsOfSequence * columns;
        return new Kept(
                sending * ofStep + ends * known,
                sending * ofStep + ends * (ofStep + sequences * KnownRows.PLACE_COLUMNS));
    }

    /**
     * What ends of links keep, in elements of F32.
     *
     * @param committed holds from one step to the next
     * @param pending what a step makes of it, which travels to a mirror beside the gradients
     */
    public record Kept(long committed, long pending) {
        public long bytes() {
            return (committed + pending) * Float.BYTES;
        }
    }

    /** The memory of channels and of what stages make, as {@link BoundaryBuffers} takes it. */
    private record Sizes(
            RunPlan plan, BufferNeeds needs, int rows, int columns, boolean keepsSent) {
        long whole() {
            return (long) rows * columns * Float.BYTES;
        }

        /** Of a stage that sends some of what it makes. */
        long sent(int stage, Made made) {
            List<ChannelKey> channels = needs.outbound(stage, made);
            if (channels.isEmpty()) {
                return 0;
            }
            ChannelKey any = channels.getFirst();
            boolean coded = plan.codecs().of(any).isPresent();
            int kept = keepsSent ? channels.stream().mapToInt(this::credits).sum() : 0;
            int count = kept + (coded ? needs.peakSent(stage, made) : needs.peak(stage, made));
            return count * plan.codecs().bytes(any, rows, columns)
                    + (coded ? (needs.peakHandedOver(stage, made) + 1) * whole() : 0);
        }

        long received(ChannelKey channel) {
            int credits = credits(channel);
            boolean coded = plan.codecs().of(channel).isPresent();
            int slots = coded ? credits : needs.slots(channel, credits);
            return slots * plan.codecs().bytes(channel, rows, columns)
                    + (coded ? needs.peak(channel) * whole() : 0);
        }

        private int credits(ChannelKey channel) {
            return plan.credits(channel);
        }
    }
}
