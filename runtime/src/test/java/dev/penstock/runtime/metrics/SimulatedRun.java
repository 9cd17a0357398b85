package dev.penstock.runtime.metrics;

import dev.penstock.actors.spi.RankStep;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.lower.Lowering;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import dev.penstock.schedules.simulate.Timeline;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.function.LongUnaryOperator;

/** Step reports as a real run would give them, timed by the simulator on a generated schedule. */
public final class SimulatedRun {
    private static final long CLOCK = 7_000_000_000_000L;
    private static final long UPDATE_NANOS = 3_000_000;

    private final Schedule schedule;

    private SimulatedRun(Schedule schedule) {
        this.schedule = schedule;
    }

    public static SimulatedRun of(String kind, PipelineShape shape) {
        return new SimulatedRun(Lowering.lower(Generators.generate(kind, shape)));
    }

    /** With an embedding that the first and the last stage share. */
    public static SimulatedRun tied(String kind, PipelineShape shape) {
        return new SimulatedRun(
                Lowering.lower(
                        Generators.generate(kind, shape), List.of(List.of(0, shape.stages() - 1))));
    }

    public Schedule schedule() {
        return schedule;
    }

    /** Stages of different speed, transfers and collectives free: what a perfect run would do. */
    public StepReport perfect(long step) {
        return report(step, this::compute);
    }

    /** As on a real machine: noisy ops, transfers that take their time. */
    public StepReport noisy(long step) {
        Random random = new Random(step);
        return report(
                step,
                (rank, position, op) ->
                        op instanceof Op.Compute
                                ? Math.round(
                                        compute(rank, position, op)
                                                * (1 + 0.05 * random.nextDouble()))
                                : 150_000 + random.nextInt(100_000));
    }

    /**
     * Of two pipelines: the second does the same, begins later and takes so many times as long.
     *
     * @param report of one
     */
    public static StepReport withSlowerReplica(StepReport report, long laterNanos, int factor) {
        long start = report.ranks().getFirst().opStartNanos()[0];
        LongUnaryOperator moved = nanos -> start + laterNanos + factor * (nanos - start);
        List<RankStep> ranks = new ArrayList<>(report.ranks());
        for (RankStep rank : report.ranks()) {
            ranks.add(
                    RankSteps.of(
                            report.ranks().size() + rank.rank(),
                            Arrays.stream(rank.opStartNanos()).map(moved).toArray(),
                            Arrays.stream(rank.opEndNanos()).map(moved).toArray(),
                            moved.applyAsLong(rank.updateStartNanos()),
                            moved.applyAsLong(rank.updateEndNanos()),
                            rank.peakBytes(),
                            rank.allocatedHeapBytes()));
        }
        return new StepReport(
                report.step(),
                report.loss(),
                report.gradientNorm(),
                report.clipFactor(),
                report.startNanos(),
                moved.applyAsLong(report.endNanos()),
                ranks);
    }

    /** The same report of a step that took so long as a whole. */
    static StepReport lasting(StepReport report, long nanos) {
        return new StepReport(
                report.step(),
                report.loss(),
                report.gradientNorm(),
                report.clipFactor(),
                report.startNanos(),
                report.startNanos() + nanos,
                report.ranks());
    }

    private long compute(int rank, int position, Op op) {
        long slow = 1L + op.stage() % 2;
        return switch (op) {
            case Op.Forward(var unit) -> 4_000_000 + 400_000 * slow + 300_000L * unit.slice();
            case Op.Backward(var unit) -> 8_000_000 + 700_000 * slow + 500_000L * unit.slice();
            case Op.BackwardInput _,
                    Op.BackwardWeight _,
                    Op.Recompute _,
                    Op.Overlapped _,
                    Op.ActivationOp _,
                    Op.ParameterOp _,
                    Op.Transfer _,
                    Op.ReduceGradients _ ->
                    0;
        };
    }

    private StepReport report(long step, CostModel costs) {
        Timeline timeline = ScheduleSimulator.simulate(schedule, costs);
        long start = CLOCK + step * 200_000_000;
        long end = start + timeline.makespanNanos();
        List<RankStep> ranks = new ArrayList<>();
        for (int rank = 0; rank < schedule.programs().size(); rank++) {
            ranks.add(rankStep(timeline, rank, start, end));
        }
        return new StepReport(
                step,
                2.2 + 3.3 / Math.sqrt(step) + 0.05 * Math.sin(step),
                1.5 / step + 0.1,
                1.0,
                start - 50_000,
                end + UPDATE_NANOS + 50_000,
                ranks);
    }

    private RankStep rankStep(Timeline timeline, int rank, long start, long end) {
        List<Op> ops = schedule.program(rank).ops();
        long[] starts = new long[ops.size()];
        long[] ends = new long[ops.size()];
        long free = start;
        for (int i = 0; i < ops.size(); i++) {
            boolean waits =
                    switch (ops.get(i)) {
                        case Op.ReceiveActivation _, Op.ReceiveGradient _, Op.ReduceGradients _ ->
                                true;
                        case Op.Compute _,
                                Op.Overlapped _,
                                Op.ActivationOp _,
                                Op.ParameterOp _,
                                Op.SendActivation _,
                                Op.SendGradient _ ->
                                false;
                    };
            ends[i] = start + timeline.endNanos(rank, i);
            starts[i] = waits ? free : start + timeline.startNanos(rank, i);
            free = ends[i];
        }
        return RankSteps.of(
                rank, starts, ends, end, end + UPDATE_NANOS, 300_000_000L + rank, 40L * ops.size());
    }
}
