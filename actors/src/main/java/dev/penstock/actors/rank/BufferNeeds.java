package dev.penstock.actors.rank;

import dev.penstock.actors.spi.RunPlan;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The most boundary tensors of each use that a rank holds at a time, found by walking its programs.
 *
 * <pre>
 *   input             RECV_F .. B or I, or F without these    in a receive slot
 *   output            F .. SEND_F, or its reader on the same rank
 *   output gradient   RECV_B .. B                                  in a receive slot
 *   input gradient    B .. SEND_B, or its reader on the same rank
 * </pre>
 */
final class BufferNeeds {
    /** The role of a boundary tensor for its stage. */
    enum Use {
        INPUT,
        OUTPUT,
        OUTPUT_GRADIENT,
        INPUT_GRADIENT
    }

    private record Key(int stage, Use use) {}

    private final Map<Key, Integer> peak = new HashMap<>();

    /**
     * For each kind of received tensor and each schedule, how many are held right after each
     * receive.
     */
    private final Map<Key, List<List<Integer>>> heldAfterReceive = new HashMap<>();

    /** Returns the needs of a rank, over passes of every kind. */
    static BufferNeeds of(int rank, RunPlan plan) {
        return of(plan.grid().placeOf(rank).pipeline(), plan.training(), plan.evaluation());
    }

    /** Walks this rank's program in every schedule and keeps the larger counts. */
    static BufferNeeds of(int rank, Schedule... schedules) {
        var needs = new BufferNeeds();
        for (Schedule schedule : schedules) {
            needs.new Walk(schedule).run(schedule.program(rank));
        }
        return needs;
    }

    /** Returns the most tensors of this use held at a time; 0 if there are never any. */
    int peak(int stage, Use use) {
        return peak.getOrDefault(new Key(stage, use), 0);
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
    int slots(int stage, Use use, int credits) {
        int slots = credits;
        for (List<Integer> held : heldAfterReceive.getOrDefault(new Key(stage, use), List.of())) {
            for (int received = 1; received <= held.size(); received++) {
                int underWay = Math.min(credits, held.size() - received);
                slots = Math.max(slots, held.get(received - 1) + underWay);
            }
        }
        return slots;
    }

    private final class Walk {
        private final Map<Key, List<Integer>> received = new HashMap<>();
        private final Map<Key, Integer> held = new HashMap<>();
        private final Topology topology;

        Walk(Schedule schedule) {
            this.topology = new Topology(schedule);
        }

        void run(RankProgram program) {
            program.ops().forEach(this::run);
            received.forEach(
                    (key, held) ->
                            heldAfterReceive
                                    .computeIfAbsent(key, _ -> new ArrayList<>())
                                    .add(held));
        }

        private void receive(int stage, Use use) {
            add(stage, use, 1);
            var key = new Key(stage, use);
            received.computeIfAbsent(key, _ -> new ArrayList<>()).add(held.getOrDefault(key, 0));
        }

        private void run(Op op) {
            switch (op) {
                case Op.ReceiveActivation(WorkUnit u) -> receive(u.stage(), Use.INPUT);
                case Op.Forward(WorkUnit u) -> {
                    if (!topology.isLast(u.stage())) {
                        add(u.stage(), Use.OUTPUT, 1);
                    }
                    if (!topology.hasBackward(u.stage())) {
                        releaseInput(u.stage());
                    }
                }
                case Op.SendActivation(WorkUnit u) -> add(u.stage(), Use.OUTPUT, -1);
                case Op.ReceiveGradient(WorkUnit u) -> receive(u.stage(), Use.OUTPUT_GRADIENT);
                case Op.InputGradient backward -> {
                    if (topology.passesGradient(op.stage())) {
                        add(op.stage(), Use.INPUT_GRADIENT, 1);
                    }
                    releaseInput(op.stage());
                    releaseOutputGradient(op.stage());
                }
                case Op.Overlapped(Op.Forward forward, Op.InputGradient backward) -> {
                    run(forward);
                    run(backward);
                }
                case Op.SendGradient(WorkUnit u) -> add(u.stage(), Use.INPUT_GRADIENT, -1);
                case Op.BackwardWeight _,
                        Op.Recompute _,
                        Op.ParameterOp _,
                        Op.ReduceGradients _ -> {}
            }
        }

        private void releaseInput(int stage) {
            if (stage > 0) {
                boolean local = topology.isLocal(stage - 1, stage);
                add(local ? stage - 1 : stage, local ? Use.OUTPUT : Use.INPUT, -1);
            }
        }

        private void releaseOutputGradient(int stage) {
            if (!topology.isLast(stage)) {
                boolean local = topology.isLocal(stage, stage + 1);
                add(
                        local ? stage + 1 : stage,
                        local ? Use.INPUT_GRADIENT : Use.OUTPUT_GRADIENT,
                        -1);
            }
        }

        private void add(int stage, Use use, int count) {
            var key = new Key(stage, use);
            int now = held.merge(key, count, Integer::sum);
            peak.merge(key, now, Math::max);
        }
    }
}
