package dev.penstock.benchmarks;

import dev.penstock.actors.spi.RankStep;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.runtime.launch.RunAssembly;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import dev.penstock.schedules.simulate.UnitCosts;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Predicate;
import java.util.stream.Stream;

/**
 * STP over two ranks of two tensor shards whose links are slow: how long a step takes with the ops
 * of a pair one after the other and at once, and how long in simulation, where a computation's sums
 * cost what their ways over the link take.
 *
 * <p>Arguments: latencies of the shards' links in milliseconds, {@code 0 2 5 10} unless given.
 */
public final class PairsBenchmark {
    private static final int STEPS = 6;
    private static final int MICRO_BATCHES = 8;
    private static final TrainingShape SHAPE = new TrainingShape("width 64", 4, 64, 2, 64, 256);

    /** A block's sums in a forward, as in a backward; each is added up, then handed out. */
    private static final int WAYS_OF_BLOCK = 2 * 2;

    private static final int BLOCKS_OF_STAGE = 1;

    /**
     * The best step of the last half.
     *
     * @param nanos of a step
     * @param updateNanos of its update
     * @param costs of its computations outside of pairs
     */
    private record Measured(long nanos, long updateNanos, Costs costs, Schedule order) {}

    private record Costs(long forward, long backward, long weight) {}

    private PairsBenchmark() {}

    public static void main(String[] arguments) {
        PrintStream out = System.out;
        out.printf(
                """
                stp, 2 ranks of 2 stages, 2 tensor shards, %d layers, width %d, context %d, %d micro-batches

                latency   one after the other      at once   faster   simulated: apart   at once   faster
                """,
                SHAPE.layers(), SHAPE.width(), SHAPE.context(), MICRO_BATCHES);
        List<String> latencies =
                arguments.length == 0 ? List.of("0", "2", "5", "10") : List.of(arguments);
        Costs costs =
                Stream.of(measured("0", false), measured("0", true))
                        .min(Comparator.comparingLong(Measured::nanos))
                        .orElseThrow()
                        .costs();
        for (String latency : latencies) {
            Measured apart = measured(latency, false);
            Measured atOnce = measured(latency, true);
            long sum =
                    Math.round(1e6 * Double.parseDouble(latency)) * WAYS_OF_BLOCK * BLOCKS_OF_STAGE;
            double simulatedApart =
                    simulated(costs, sum, apart(apart.order())) + apart.updateNanos();
            double simulatedAtOnce = simulated(costs, sum, apart.order()) + atOnce.updateNanos();
            out.printf(
                    Locale.ROOT,
                    "%4s ms %19.1f ms %9.1f ms %8.2f %15.1f ms %6.1f ms %8.2f%n",
                    latency,
                    apart.nanos() / 1e6,
                    atOnce.nanos() / 1e6,
                    (double) apart.nanos() / atOnce.nanos(),
                    simulatedApart / 1e6,
                    simulatedAtOnce / 1e6,
                    simulatedApart / simulatedAtOnce);
        }
        out.printf(
                """

                the best of the last half of %d steps counts; simulated: with the median forward and backward of a
                run without latency, %d ways over the link as the sums of a computation, and the measured update
                """,
                STEPS, WAYS_OF_BLOCK * BLOCKS_OF_STAGE);
    }

    private static Measured measured(String latency, boolean atOnce) {
        List<String> settings =
                new ArrayList<>(
                        List.of(
                                "schedule.kind=stp",
                                "schedule.pairs-at-once=" + atOnce,
                                "pipeline.stages=2",
                                "parallel.tensor=2",
                                "device.threads=1",
                                "evaluation.every=0"));
        if (!latency.equals("0")) {
            settings.add("data-plane.emulate.latency=" + latency + " ms");
            settings.add("data-plane.emulate.between=[[0, 2], [1, 3]]");
        }
        var setup =
                new TrainingMeasurement.Setup(
                        "latency " + latency, SHAPE, STEPS, MICRO_BATCHES, MICRO_BATCHES, settings);
        return ShortRun.of(setup, PairsBenchmark::summary);
    }

    private static Measured summary(RunAssembly assembly, List<StepReport> reports) {
        StepReport best =
                reports.subList(reports.size() / 2, reports.size()).stream()
                        .min(Comparator.comparingLong(PairsBenchmark::nanos))
                        .orElseThrow();
        long update =
                best.ranks().stream()
                        .mapToLong(rank -> rank.updateEndNanos() - rank.updateStartNanos())
                        .max()
                        .orElse(0);
        var costs =
                new Costs(
                        median(assembly, best, op -> op instanceof Op.Forward),
                        median(assembly, best, op -> op instanceof Op.Backward),
                        median(assembly, best, op -> op instanceof Op.BackwardWeight));
        return new Measured(nanos(best), update, costs, assembly.plan().training());
    }

    private static long nanos(StepReport step) {
        return step.endNanos() - step.startNanos();
    }

    private static long median(RunAssembly assembly, StepReport step, Predicate<Op> wanted) {
        List<Long> times = new ArrayList<>();
        for (RankStep rank : step.ranks()) {
            int pipeline = assembly.plan().grid().placeOf(rank.rank()).pipeline();
            List<Op> ops = assembly.plan().training().program(pipeline).ops();
            for (int i = 0; i < ops.size(); i++) {
                if (wanted.test(ops.get(i))) {
                    times.add(rank.opEndNanos()[i] - rank.opStartNanos()[i]);
                }
            }
        }
        times.sort(Comparator.naturalOrder());
        return times.get(times.size() / 2);
    }

    private static double simulated(Costs costs, long sum, Schedule order) {
        UnitCosts units =
                UnitCosts.of(
                        Map.of(
                                UnitCosts.Kind.FORWARD,
                                costs.forward(),
                                UnitCosts.Kind.BACKWARD_INPUT,
                                Math.max(1, costs.backward() - costs.weight()),
                                UnitCosts.Kind.BACKWARD_WEIGHT,
                                costs.weight(),
                                UnitCosts.Kind.SUM,
                                sum));
        return ScheduleSimulator.simulate(order, units).makespanNanos();
    }

    /** The same order with the ops of pairs one after the other. */
    private static Schedule apart(Schedule order) {
        return order.withPrograms(
                order.programs().stream()
                        .map(
                                program ->
                                        new RankProgram(
                                                program.rank(),
                                                program.ops().stream()
                                                        .flatMap(PairsBenchmark::apart)
                                                        .toList()))
                        .toList());
    }

    private static Stream<Op> apart(Op op) {
        return op instanceof Op.Overlapped(Op.Forward forward, Op.Compute partner)
                ? Stream.of(forward, partner)
                : Stream.of(op);
    }
}
