package dev.penstock.schedules.simulate;

import dev.penstock.schedules.ir.Channel;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * What travels between the ranks in one step; neighbouring stages on one rank send nothing.
 *
 * @param channels by sending stage, then receiving stage; those that carry nothing are left out
 * @param links by sending rank, then receiving rank
 * @param ranks entry r is rank r
 */
public record Traffic(List<OfChannel> channels, List<OfLink> links, List<OfRank> ranks) {
    public Traffic {
        channels = List.copyOf(channels);
        links = List.copyOf(links);
        ranks = List.copyOf(ranks);
    }

    /** Tensors, and the bytes of all of them. */
    public record Volume(long tensors, long bytes) {
        private static final Volume NONE = new Volume(0, 0);

        Volume plus(Volume other) {
            return new Volume(tensors + other.tensors, bytes + other.bytes);
        }
    }

    /** From one stage to a neighbour. */
    public record OfChannel(Channel channel, Volume volume) {}

    /** From one rank to another, all channels together. */
    public record OfLink(int fromRank, int toRank, Volume volume) {}

    /**
     * Of one rank.
     *
     * @param gathers of parameters, by the ops of its program
     * @param reductions of gradients
     */
    public record OfRank(int rank, Volume sent, Volume received, int gathers, int reductions) {}

    /** The size of a tensor. */
    public interface TensorBytes {
        /**
         * Bytes that travel.
         *
         * @param unit the unit that the tensor is for: {@code channel.toStage()} is its stage
         */
        long bytes(Channel channel, WorkUnit unit);
    }

    /** The traffic of a schedule, lowered or not. */
    public static Traffic of(Schedule schedule, TensorBytes sizes) {
        Map<Channel, Volume> channels =
                new TreeMap<>(
                        Comparator.comparingInt(Channel::fromStage)
                                .thenComparingInt(Channel::toStage)
                                .thenComparingInt(Channel::fromPeer)
                                .thenComparingInt(Channel::toPeer));
        var handover = new Handover(schedule);
        for (RankProgram program : schedule.programs()) {
            for (Op op : program.ops()) {
                for (Op part : op instanceof Op.Overlapped ? op.computations() : List.of(op)) {
                    int tensor = exists(schedule, part) ? handover.gives(part) : Handover.NONE;
                    if (tensor != Handover.NONE) {
                        int number = handover.channelOfTensor(tensor);
                        Channel channel = handover.channelAt(number).orElseThrow();
                        WorkUnit unit = schedule.shape().unitAt(tensor % schedule.shape().units());
                        var one = new Volume(1, sizes.bytes(channel, unit));
                        channels.merge(channel, one, Volume::plus);
                    }
                }
            }
        }
        return of(schedule, channels);
    }

    private static boolean exists(Schedule schedule, Op op) {
        return op instanceof Op.UnitOp of && schedule.shape().contains(of.unit());
    }

    private static Traffic of(Schedule schedule, Map<Channel, Volume> channels) {
        Map<Integer, Map<Integer, Volume>> links = new TreeMap<>();
        channels.forEach(
                (channel, volume) ->
                        links.computeIfAbsent(
                                        schedule.placement().senderOf(channel),
                                        _ -> new TreeMap<>())
                                .merge(
                                        schedule.placement().receiverOf(channel),
                                        volume,
                                        Volume::plus));
        var ofLinks = new ArrayList<OfLink>();
        links.forEach(
                (from, all) -> all.forEach((to, sum) -> ofLinks.add(new OfLink(from, to, sum))));
        return new Traffic(
                channels.entrySet().stream()
                        .map(entry -> new OfChannel(entry.getKey(), entry.getValue()))
                        .toList(),
                ofLinks,
                schedule.programs().stream().map(program -> rank(program, ofLinks)).toList());
    }

    private static OfRank rank(RankProgram program, List<OfLink> links) {
        int rank = program.rank();
        return new OfRank(
                rank,
                sum(links.stream().filter(link -> link.fromRank() == rank).toList()),
                sum(links.stream().filter(link -> link.toRank() == rank).toList()),
                (int) program.ops().stream().filter(Op.GatherParameters.class::isInstance).count(),
                (int) program.ops().stream().filter(Op.ReduceGradients.class::isInstance).count());
    }

    private static Volume sum(List<OfLink> links) {
        return links.stream().map(OfLink::volume).reduce(Volume.NONE, Volume::plus);
    }
}
