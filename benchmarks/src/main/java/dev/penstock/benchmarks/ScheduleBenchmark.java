package dev.penstock.benchmarks;

import com.sun.management.OperatingSystemMXBean;
import dev.penstock.schedules.generate.OneForwardOneBackward;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.lower.Lowering;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.InFlight;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import dev.penstock.schedules.simulate.Timeline;
import dev.penstock.schedules.validate.Conditions;
import dev.penstock.schedules.validate.ScheduleValidator;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.lang.management.MemoryType;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.function.Supplier;

/**
 * The cost of knowing all about an order before it runs: 1F1B is generated, lowered, given its
 * receive slots, proved with exactly these and simulated. Sizes double in both directions, so four
 * times the ops should take four times the time.
 *
 * <p>Arguments: sizes to run, such as {@code 128x512 1024x4096}; without any, all of them and the
 * searches of {@link ScheduleSearchBenchmark}.
 */
public final class ScheduleBenchmark {
    private static final List<String> SIZES =
            List.of("128x512", "256x1024", "512x2048", "1024x4096");

    private final PrintStream out;

    /** The seconds that each phase of one row took. */
    private final List<Double> seconds = new ArrayList<>();

    private ScheduleBenchmark(PrintStream out) {
        this.out = out;
    }

    public static void main(String[] arguments) {
        var benchmark = new ScheduleBenchmark(System.out);
        benchmark.head();
        for (String size : arguments.length == 0 ? SIZES : Arrays.asList(arguments)) {
            String[] numbers = size.split("x", 2);
            benchmark.row(
                    size,
                    PipelineShape.of(Integer.parseInt(numbers[0]), Integer.parseInt(numbers[1])));
        }
        benchmark.legend();
        if (arguments.length == 0) {
            new ScheduleSearchBenchmark(System.out).run();
        }
    }

    private void head() {
        out.printf(
                "%-11s %9s %9s %9s %9s %9s %9s %9s %8s %9s%n",
                "ranks x mb",
                "ops",
                "generate",
                "lower",
                "slots",
                "prove",
                "simulate",
                "together",
                "Mops/s",
                "peak heap");
    }

    private void row(String size, PipelineShape shape) {
        seconds.clear();
        ManagementFactory.getMemoryPoolMXBeans().forEach(MemoryPoolMXBean::resetPeakUsage);
        Schedule lowered =
                timed(
                        () -> {
                            Schedule computed = timed(() -> OneForwardOneBackward.schedule(shape));
                            return Lowering.lower(computed);
                        });
        seconds.set(1, seconds.get(1) - seconds.get(0));
        InFlight slots = timed(() -> InFlight.auto(lowered));
        timed(
                () ->
                        ScheduleValidator.validate(lowered, Conditions.training().with(slots))
                                .orThrow());
        long makespan =
                timed(
                        () -> {
                            Timeline timeline =
                                    ScheduleSimulator.simulate(
                                            lowered, CostModel.split(1, 1, 1, 0), slots);
                            return timeline.bubble().makespanNanos();
                        });
        long expected = 3L * (shape.microBatches() + shape.ranks() - 1);
        if (makespan != expected) {
            throw new IllegalStateException(
                    "1F1B takes %d, expected %d".formatted(makespan, expected));
        }
        print(size, 2L * shape.units());
    }

    private <T> T timed(Supplier<T> phase) {
        long start = cpuNanos();
        T result = phase.get();
        seconds.add((cpuNanos() - start) / 1e9);
        return result;
    }

    private void print(String size, long ops) {
        double together = seconds.stream().mapToDouble(Double::doubleValue).sum();
        out.printf(Locale.ROOT, "%-11s %8.2fM", size, ops / 1e6);
        seconds.forEach(phase -> out.printf(Locale.ROOT, " %7.2f s", phase));
        out.printf(
                Locale.ROOT,
                " %7.2f s %8.2f %5.0f MiB%n",
                together,
                ops / together / 1e6,
                peakHeapBytes() / 0x1p20);
        out.flush();
    }

    /** The CPU time of the whole process, so that other work on the machine does not count. */
    static long cpuNanos() {
        return ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
                .getProcessCpuTime();
    }

    /** The peak use of the heap, garbage included. */
    private static long peakHeapBytes() {
        return ManagementFactory.getMemoryPoolMXBeans().stream()
                .filter(pool -> pool.getType() == MemoryType.HEAP)
                .mapToLong(pool -> pool.getPeakUsage().getUsed())
                .sum();
    }

    private void legend() {
        out.printf(
                """

                ops: computations; after lowering there are three times as many. Mops/s: computations over the time of all phases
                slots: a run with unbounded channels counts the receive slots; the proof holds for exactly these
                seconds of CPU time, including compiler and garbage collector; heap of at most %d MiB
                goal for 1024x4096: 20 s and 4096 MiB
                """,
                Runtime.getRuntime().maxMemory() >> 20);
    }
}
