package dev.penstock.actors.rank;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.ArrayList;
import java.util.Collection;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The channels of a rank, and the most boundary tensors of each use that it holds at a time, found
 * by walking its programs.
 *
 * <pre>
 *   input             RECV_F .. B or I, or F without these    in a receive slot of the channel
 *   output            F .. SEND_F, or its reader on the same rank
 *   output gradient   RECV_B .. B                             in a receive slot of the channel
 *   input gradient    B .. SEND_B, or its reader on the same rank
 * </pre>
 */
final class BufferNeeds {
    /** What a stage makes. */
    enum Made {
        OUTPUT,
        INPUT_GRADIENT
    }

    /** Which of them. */
    private enum Fate {
        SENT,
        HANDED_OVER,
        ANY
    }

    private record Key(int stage, Made made, Fate fate) {}

    private final Map<Key, Integer> peak = new HashMap<>();
    private final Map<Made, Integer> peakInHouse = new EnumMap<>(Made.class);
    private final Map<ChannelKey, Integer> peakReceived = new LinkedHashMap<>();
    private final Set<ChannelKey> outbound = new LinkedHashSet<>();

    /** For each channel and each schedule, how many are held right after each receive. */
    private final Map<ChannelKey, List<List<Integer>>> heldAfterReceive = new HashMap<>();

    /** Returns the needs of a rank, over passes of every kind. */
    static BufferNeeds of(int rank, RunPlan plan) {
        var needs = new BufferNeeds();
        for (StepKind kind : StepKind.values()) {
            needs.walk(Topology.of(plan, kind, rank), plan.program(kind, rank));
        }
        return needs;
    }

    /** Walks this rank's program in every schedule and keeps the larger counts. */
    static BufferNeeds of(int rank, Schedule... schedules) {
        var needs = new BufferNeeds();
        for (Schedule schedule : schedules) {
            needs.walk(new Topology(schedule, rank), schedule.program(rank));
        }
        return needs;
    }

    private void walk(Topology topology, RankProgram program) {
        new Walk(topology).run(program);
    }

    /** Returns the channels that bring this rank tensors. */
    Set<ChannelKey> inbound() {
        return peakReceived.keySet();
    }

    /** Returns the channels on which a stage of this rank sends what it makes. */
    List<ChannelKey> outbound(int stage, Made made) {
        boolean forward = made == Made.OUTPUT;
        return outbound.stream()
                .filter(channel -> channel.fromStage() == stage)
                .filter(channel -> forward == (channel.stage() > stage))
                .toList();
    }

    /** Returns the most tensors that a stage has made and not got rid of; 0 if it makes none. */
    int peak(int stage, Made made) {
        return peak.getOrDefault(new Key(stage, made, Fate.ANY), 0);
    }

    /** Returns the most of them that wait for their send. */
    int peakSent(int stage, Made made) {
        return peak.getOrDefault(new Key(stage, made, Fate.SENT), 0);
    }

    /** Returns the most of them that a stage of the same rank reads. */
    int peakHandedOver(int stage, Made made) {
        return peak.getOrDefault(new Key(stage, made, Fate.HANDED_OVER), 0);
    }

    /**
     * Returns the most tensors that stages which send nothing hold at a time together: other stages
     * of the same rank read what they make, or another tensor shard sends it.
     *
     * @param stages of this rank
     */
    int peakInHouse(Collection<Integer> stages, Made made) {
        int apart =
                stages.stream()
                        .filter(stage -> outbound(stage, made).isEmpty())
                        .mapToInt(stage -> peak(stage, made))
                        .sum();
        return Math.min(apart, peakInHouse.getOrDefault(made, 0));
    }

    /** Returns the most tensors held at a time that a channel has brought. */
    int peak(ChannelKey channel) {
        return peakReceived.getOrDefault(channel, 0);
    }

    /**
     * Receive slots that suffice: at every moment those that are held and those that may be under
     * way. Where all tensors of a step are here already, none is under way any more.
     *
     * <pre>
     *   credits 4, received   0 1 2 3 4 5 6 7 8     of 8 that are held to the end
     *   may be under way      4 4 4 4 4 3 2 1 0
     *   held                  0 1 2 3 4 5 6 7 8     together at most 8, not 4 + 8
     * </pre>
     *
     * @param credits how many tensors may be under way
     */
    int slots(ChannelKey channel, int credits) {
        int slots = credits;
        for (List<Integer> held : heldAfterReceive.getOrDefault(channel, List.of())) {
            for (int received = 1; received <= held.size(); received++) {
                int underWay = Math.min(credits, held.size() - received);
                slots = Math.max(slots, held.get(received - 1) + underWay);
            }
        }
        return slots;
    }

    private final class Walk {
        private final Map<ChannelKey, List<Integer>> received = new HashMap<>();
        private final Map<ChannelKey, Integer> heldOfChannel = new HashMap<>();
        private final Map<Key, Integer> held = new HashMap<>();
        private final Map<Made, Integer> heldInHouse = new EnumMap<>(Made.class);
        private final Topology topology;

        Walk(Topology topology) {
            this.topology = topology;
        }

        void run(RankProgram program) {
            program.ops().forEach(this::run);
            received.forEach(
                    (channel, counts) ->
                            heldAfterReceive
                                    .computeIfAbsent(channel, _ -> new ArrayList<>())
                                    .add(counts));
        }

        private void run(Op op) {
            switch (op) {
                case Op.ReceiveActivation(WorkUnit unit) -> receive(topology.activationInto(unit));
                case Op.Forward(WorkUnit unit) -> {
                    if (!topology.isLast(unit.stage())) {
                        makes(unit, Made.OUTPUT, topology.isHandedOutput(unit));
                    }
                    if (!topology.hasBackward(unit.stage())) {
                        releaseInput(unit);
                    }
                }
                case Op.SendActivation(WorkUnit unit) -> sends(unit, Made.OUTPUT);
                case Op.ReceiveGradient(WorkUnit unit) -> receive(topology.gradientInto(unit));
                case Op.InputGradient backward -> {
                    WorkUnit unit = backward.unit();
                    if (topology.passesGradient(unit.stage())) {
                        makes(unit, Made.INPUT_GRADIENT, topology.isHandedInput(unit));
                    }
                    releaseInput(unit);
                    releaseOutputGradient(unit);
                }
                case Op.Overlapped(Op.Forward forward, Op.Compute partner) -> {
                    run(forward);
                    run(partner);
                }
                case Op.SendGradient(WorkUnit unit) -> sends(unit, Made.INPUT_GRADIENT);
                case Op.BackwardWeight _,
                        Op.Recompute _,
                        Op.ActivationOp _,
                        Op.ParameterOp _,
                        Op.ReduceGradients _ -> {}
            }
        }

        private void makes(WorkUnit unit, Made made, boolean handedOver) {
            if (handedOver) {
                add(unit.stage(), made, Fate.HANDED_OVER, 1);
            } else {
                add(unit, made, 1);
            }
        }

        private void sends(WorkUnit unit, Made made) {
            outbound.addAll(channels(unit, made));
            add(unit, made, -1);
        }

        /** None if another tensor shard sends it. */
        private List<ChannelKey> channels(WorkUnit unit, Made made) {
            return switch (made) {
                case OUTPUT -> topology.activationOutOf(unit);
                case INPUT_GRADIENT -> topology.gradientOutOf(unit);
            };
        }

        private void add(WorkUnit unit, Made made, int count) {
            if (channels(unit, made).isEmpty()) {
                addInHouse(made, count);
            }
            add(unit.stage(), made, Fate.SENT, count);
        }

        private void addInHouse(Made made, int count) {
            peakInHouse.merge(made, heldInHouse.merge(made, count, Integer::sum), Math::max);
        }

        private void receive(ChannelKey channel) {
            int now = heldOfChannel.merge(channel, 1, Integer::sum);
            peakReceived.merge(channel, now, Math::max);
            received.computeIfAbsent(channel, _ -> new ArrayList<>()).add(now);
        }

        private void releaseInput(WorkUnit unit) {
            if (topology.isHandedInput(unit)) {
                add(unit.stage() - 1, Made.OUTPUT, Fate.HANDED_OVER, -1);
            } else if (unit.stage() > 0) {
                heldOfChannel.merge(topology.activationInto(unit), -1, Integer::sum);
            }
        }

        private void releaseOutputGradient(WorkUnit unit) {
            if (topology.isHandedOutput(unit)) {
                add(unit.stage() + 1, Made.INPUT_GRADIENT, Fate.HANDED_OVER, -1);
            } else if (!topology.isLast(unit.stage())) {
                heldOfChannel.merge(topology.gradientInto(unit), -1, Integer::sum);
            }
        }

        private void add(int stage, Made made, Fate fate, int count) {
            if (fate == Fate.HANDED_OVER) {
                addInHouse(made, count);
            }
            for (Fate each : List.of(fate, Fate.ANY)) {
                var key = new Key(stage, made, each);
                peak.merge(key, held.merge(key, count, Integer::sum), Math::max);
            }
        }
    }
}
