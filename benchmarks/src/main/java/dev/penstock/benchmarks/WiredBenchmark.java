package dev.penstock.benchmarks;

import dev.penstock.schedules.generate.base.OpCosts;
import dev.penstock.schedules.generate.wired.WiredOrder;
import dev.penstock.schedules.generate.wired.WiredOrder.Backwards;
import dev.penstock.schedules.generate.wired.Wirings;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.lower.Lowering;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.InFlight;
import dev.penstock.schedules.simulate.MemoryProfile;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import dev.penstock.schedules.validate.Conditions;
import dev.penstock.schedules.validate.ScheduleValidator;

import java.io.PrintStream;
import java.util.Collections;
import java.util.List;
import java.util.Locale;

/**
 * Wired orders in thought: what a step takes that goes on without a dead rank, and what peers of
 * unequal speed reach. Every order is lowered, given its buffers and proved before it is timed; a
 * forward and both halves of a backward cost 1 each, transfers nothing. No arguments.
 */
public final class WiredBenchmark {
    private static final int STAGES = 2;
    private static final List<Integer> MICRO_BATCHES = List.of(4, 8, 16, 32, 64);

    private final PrintStream out;

    private WiredBenchmark(PrintStream out) {
        this.out = out;
    }

    public static void main(String[] arguments) {
        var benchmark = new WiredBenchmark(System.out);
        for (int peers : List.of(2, 4, 8)) {
            benchmark.degraded(peers, 2);
        }
        benchmark.degraded(4, 4);
        benchmark.unequal();
    }

    private void degraded(int peers, int stages) {
        out.printf(
                Locale.ROOT,
                "%d replicas x %d stages, a rank of one stage gone; bound of rerouting %.3f%n",
                peers,
                stages,
                (double) peers / (peers - 1));
        out.printf("%-11s %-6s %-6s %8s", "backwards", "each", "held", "usual");
        for (int stage = 0; stage < stages; stage++) {
            out.printf(" %9s", "stage " + stage);
        }
        out.printf(" %6s%n", "peak");
        for (Backwards backwards : Backwards.values()) {
            for (int each : MICRO_BATCHES) {
                for (int more : List.of(0, stages)) {
                    degraded(PipelineShape.of(stages, peers * each), peers, backwards, more);
                }
            }
        }
        out.println(
                "usual: a step with everybody; stage s: one without a rank of it, in usual ones;"
                    + " each: micro-batches of a replica; held: most that a rank holds, beside"
                    + " 1F1B's; peak: most that any holds");
        out.println();
    }

    private void degraded(PipelineShape ofOne, int peers, Backwards backwards, int more) {
        PipelineShape shape = ofOne.withPeers(peers);
        Wirings wirings = Wirings.equal(shape);
        List<OpCosts> costs = Collections.nCopies(shape.ranks(), OpCosts.unit());
        List<Integer> caps = WiredOrder.usualCaps(shape).stream().map(cap -> cap + more).toList();
        Schedule usual = order(shape, wirings.straight(), backwards, costs, caps);
        double whole = makespan(usual, costs);
        out.printf(
                Locale.ROOT,
                "%-11s %-6d +%-5d %8.0f",
                backwards.kind(),
                shape.microBatches() / peers,
                more,
                whole);
        int peak = 0;
        for (int rank = 0; rank < shape.pipelineRanks(); rank++) {
            Placement without = wirings.without(wirings.straight(), rank);
            Schedule degraded = order(shape, without, backwards, costs, caps);
            out.printf(Locale.ROOT, " %9.3f", makespan(degraded, costs) / whole);
            peak = Math.max(peak, peak(degraded));
        }
        out.printf(" %6d%n", peak);
    }

    private void unequal() {
        out.printf(
                "2 replicas x %d stages, one at a third of the speed; micro-batches in the time in"
                    + " which the fast one does one%n",
                STAGES);
        out.printf(
                "%-11s %-6s %-6s %10s %14s %18s%n",
                "backwards", "all", "held", "balanced", "equal split", "fast ones crossed");
        for (Backwards backwards : Backwards.values()) {
            for (int all : List.of(16, 32, 64, 128)) {
                for (int more : List.of(0, 2)) {
                    unequal(backwards, all, more);
                }
            }
        }
        out.println(
                "sum of speeds 1.333, equal split of stages that wait for nobody 0.667; crossed:"
                    + " the fast ranks of both stages in different pipelines, balanced");
    }

    private void unequal(Backwards backwards, int all, int more) {
        var fast = new OpCosts(1, 1, 1, 0);
        var slow = new OpCosts(3, 3, 3, 0);
        PipelineShape shape = PipelineShape.of(STAGES, all).withPeers(2);
        List<Integer> caps = WiredOrder.usualCaps(shape).stream().map(cap -> cap + more).toList();
        List<OpCosts> byPipeline = List.of(fast, fast, slow, slow);
        List<OpCosts> crossed = List.of(fast, slow, slow, fast);
        Wirings wirings = Wirings.equal(shape).withNanos(List.of(3L, 3L, 9L, 9L));
        Wirings across = Wirings.equal(shape).withNanos(List.of(3L, 9L, 9L, 3L));
        double work = 3.0 * all;
        out.printf(
                Locale.ROOT,
                "%-11s %-6d +%-5d %10.3f %14.3f %18.3f%n",
                backwards.kind(),
                all,
                more,
                work
                        / makespan(
                                order(shape, wirings.balanced(), backwards, byPipeline, caps),
                                byPipeline),
                work
                        / makespan(
                                order(shape, wirings.straight(), backwards, byPipeline, caps),
                                byPipeline),
                work
                        / makespan(
                                order(shape, across.balanced(), backwards, crossed, caps),
                                crossed));
    }

    /** Lowered and proved. */
    private static Schedule order(
            PipelineShape shape,
            Placement placement,
            Backwards backwards,
            List<OpCosts> costs,
            List<Integer> caps) {
        Schedule lowered =
                Lowering.lower(WiredOrder.schedule(shape, placement, backwards, costs, caps));
        Conditions conditions = Conditions.training().with(InFlight.auto(lowered));
        ScheduleValidator.validate(lowered, conditions).orThrow();
        return lowered;
    }

    private static int peak(Schedule order) {
        return MemoryProfile.of(order, PassKind.TRAINING).peakUnits();
    }

    private static long makespan(Schedule order, List<OpCosts> costs) {
        CostModel model =
                (rank, _, op) -> {
                    OpCosts of = costs.get(rank);
                    return switch (op) {
                        case Op.Forward _ -> of.forwardNanos();
                        case Op.Backward _ -> of.backwardInputNanos() + of.backwardWeightNanos();
                        case Op.BackwardInput _ -> of.backwardInputNanos();
                        case Op.BackwardWeight _ -> of.backwardWeightNanos();
                        case Op.Recompute _,
                                Op.Overlapped _,
                                Op.Transfer _,
                                Op.ActivationOp _,
                                Op.ParameterOp _,
                                Op.ReduceGradients _ ->
                                0;
                    };
                };
        return ScheduleSimulator.simulate(order, model).makespanNanos();
    }
}
