package dev.penstock.benchmarks;

import dev.penstock.actors.spi.PlanRevision;
import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.runtime.launch.RunAssembly;
import dev.penstock.runtime.metrics.PipelineMeter;
import dev.penstock.runtime.metrics.StepTimes;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.Wiring;
import dev.penstock.schedules.lower.Lowering;
import dev.penstock.schedules.simulate.MeasuredMeans;
import dev.penstock.schedules.simulate.ProfileCosts;
import dev.penstock.schedules.simulate.ProfileLine;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import java.io.IOException;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Wired runs whose ranks are not equal, measured beside simulated: two replicas of which one takes
 * three times as long, and four of which a rank dies. Every computation waits for most of its time
 * ({@code slow-stage}), so ranks stand for machines of their own although they share two cores.
 *
 * <p>Arguments: {@code speeds} or {@code deaths} for one half of it.
 */
public final class ElasticBenchmark {
    private static final int SLOWER = 3;
    private static final int WAITS = 12;

    /** Far more than it takes, also while eight processes share two cores. */
    private static final int MILLIS_A_COMPUTATION = 50;

    /** So long that some steps pass until a process is there again. */
    private static final int SECONDS_TO_START = 12;

    private static final int WARM_UP = 8;
    private static final int COUNTED = 12;
    private static final int ADAPTS_UNTIL = 30;
    private static final int EACH = 8;
    private static final List<Integer> KILLED = List.of(3, 4, 6, 1);

    private final PrintStream out;

    private ElasticBenchmark(PrintStream out) {
        this.out = out;
    }

    public static void main(String[] arguments) {
        var benchmark = new ElasticBenchmark(System.out);
        List<String> wanted = List.of(arguments);
        if (!wanted.contains("deaths")) {
            benchmark.speeds();
        }
        if (!wanted.contains("speeds")) {
            benchmark.deaths();
        }
    }

    /**
     * A step as it was.
     *
     * @param simulatedNanos the same, in simulation with the times of its computations, and its
     *     update
     * @param absent ranks
     * @param sum of the speeds of all replicas, each alone with all micro-batches, in simulation
     *     with its own times of the same computations, and the update; steps per nanosecond
     */
    private record Step(long nanos, long simulatedNanos, List<Integer> absent, double sum) {}

    /** Steps of a run, each with the order that it followed. */
    private static final class Watcher implements RunListener {
        private final int ranks;
        private final Runnable begun;
        private @Nullable Schedule order;
        private final List<StepReport> reports = new ArrayList<>();
        private final List<@Nullable Schedule> orders = new ArrayList<>();

        /**
         * @param begun is called after each step, when all processes have started
         */
        Watcher(int ranks, Runnable begun) {
            this.ranks = ranks;
            this.begun = begun;
        }

        @Override
        public void onRevised(PlanRevision revision, Schedule training, long completed) {
            order = training;
        }

        @Override
        public void onStep(StepReport report) {
            reports.add(report);
            orders.add(order);
            begun.run();
        }

        List<Step> steps(RunAssembly assembly) {
            List<Step> steps = new ArrayList<>();
            for (int i = 0; i < reports.size(); i++) {
                Schedule revised = orders.get(i);
                Schedule of = revised == null ? assembly.plan().training() : revised;
                StepReport report = reports.get(i);
                long ideal =
                        new PipelineMeter(of, RankGrid.pipeline(ranks))
                                .measure(report)
                                .ideal()
                                .makespanNanos();
                steps.add(
                        new Step(
                                report.endNanos() - report.startNanos(),
                                ideal + update(report),
                                of.placement().wiring().map(Wiring::absent).orElse(List.of()),
                                sumOfSpeeds(of, report)));
            }
            return steps;
        }

        private double sumOfSpeeds(Schedule of, StepReport report) {
            var means = new MeasuredMeans();
            means.add(StepTimes.of(of, RankGrid.pipeline(ranks), report).pipelines());
            int stages = of.shape().stages();
            Schedule alone =
                    Lowering.lower(
                            Generators.generate(
                                    "1f1b", PipelineShape.of(stages, of.shape().microBatches())));
            double sum = 0;
            List<List<ProfileLine>> lines =
                    means.ofRanks().isEmpty() ? List.of(means.lines()) : means.ofRanks();
            for (int first = 0; first < lines.size(); first += stages) {
                var costs =
                        new ProfileCosts(
                                lines
                                        .subList(first, Math.min(first + stages, lines.size()))
                                        .stream()
                                        .flatMap(List::stream)
                                        .toList());
                if (costs.missing(alone).isEmpty()) { // else a rank did nothing, or is absent
                    sum +=
                            1.0
                                    / (ScheduleSimulator.simulate(alone, costs).makespanNanos()
                                            + update(report));
                }
            }
            return sum;
        }

        private static long update(StepReport step) {
            return step.ranks().stream()
                    .mapToLong(rank -> rank.updateEndNanos() - rank.updateStartNanos())
                    .max()
                    .orElse(0);
        }
    }

    // ---- unequal speeds -------------------------------------------------------------------------

    private void speeds() {
        out.printf(
                "2 replicas, one %d times as slow; computations wait for %d of %d parts of their time; tokens per second%n",
                SLOWER, WAITS - 1, WAITS);
        out.printf(
                "%-7s %-13s %8s %8s %9s %9s %10s %7s %12s%n",
                "stages",
                "micro-batches",
                "fast",
                "slow",
                "straight",
                "measured",
                "simulated",
                "of sum",
                "of its steps");
        for (int stages : List.of(1, 2)) {
            for (int microBatches : List.of(64, 128)) {
                speeds(stages, microBatches);
            }
        }
        out.println(
                "fast, slow: alone with all micro-batches; measured: schedule.wiring = measured; simulated: with its times"
                        + " of computations and update; of sum: of fast and slow; of its steps: of what both reach alone in"
                        + " simulation with these times");
        out.println();
    }

    private void speeds(int stages, int microBatches) {
        List<Step> fast = alone(stages, microBatches, WAITS);
        List<Step> slow = alone(stages, microBatches, WAITS * SLOWER);
        List<Step> straight = together(stages, microBatches, WARM_UP + COUNTED, "straight");
        List<Step> measured = together(stages, microBatches, ADAPTS_UNTIL + COUNTED, "measured");
        double tokens = microBatches * shape(stages).context();
        double sum = tokens / seconds(fast) + tokens / seconds(slow);
        out.printf(
                Locale.ROOT,
                "%-7d %-13d %8.0f %8.0f %9.0f %9.0f %10.0f %6.1f%% %11.1f%%%n",
                stages,
                microBatches,
                tokens / seconds(fast),
                tokens / seconds(slow),
                tokens / seconds(straight),
                tokens / seconds(measured),
                tokens / simulated(measured),
                100 * tokens / seconds(measured) / sum,
                100 * shareOfSum(measured));
    }

    private static List<Step> alone(int stages, int microBatches, int factor) {
        return run(
                "alone",
                stages,
                1,
                microBatches,
                WARM_UP + COUNTED,
                () -> {},
                List.of("schedule.kind=1f1b", faults(slow(stages, "", factor))));
    }

    private static List<Step> together(int stages, int microBatches, int steps, String wiring) {
        List<String> faults = new ArrayList<>(slow(stages, "replica=0, ", WAITS));
        faults.addAll(slow(stages, "replica=1, ", WAITS * SLOWER));
        return run(
                wiring,
                stages,
                2,
                microBatches,
                steps,
                () -> {},
                List.of(
                        "schedule.kind=wired-1f1b",
                        "schedule.wiring=" + wiring,
                        "pipeline.adapt-every=4",
                        "pipeline.adapt-margin=0.02",
                        faults(faults)));
    }

    // ---- deaths ---------------------------------------------------------------------------------

    private void deaths() {
        String javaHome = System.getProperty("java.home");
        try {
            deaths(lateJava(javaHome).toString());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } finally {
            System.setProperty("java.home", javaHome);
        }
    }

    /** A Java installation whose JVMs begin late, as those on a machine that has to be found. */
    private static Path lateJava(String javaHome) throws IOException {
        Path late = Files.createTempDirectory("penstock-late-java-");
        for (String part : List.of("conf", "lib")) {
            Files.createSymbolicLink(late.resolve(part), Path.of(javaHome, part));
        }
        Path java = Files.createDirectory(late.resolve("bin")).resolve("java");
        Files.writeString(
                java,
                """
                #!/bin/sh
                sleep %d
                exec '%s/bin/java' "$@"
                """
                        .formatted(SECONDS_TO_START, javaHome));
        Files.setPosixFilePermissions(java, PosixFilePermissions.fromString("rwx------"));
        return late;
    }

    private void deaths(String late) {
        int stages = 2;
        int replicas = 4;
        List<String> faults =
                new ArrayList<>(
                        IntStream.range(0, stages)
                                .mapToObj(
                                        stage ->
                                                "{slow-stage=%d, at-least=%d ms}"
                                                        .formatted(stage, MILLIS_A_COMPUTATION))
                                .toList());
        for (int i = 0; i < KILLED.size(); i++) {
            faults.add("{kill-rank=%d, step=%d}".formatted(KILLED.get(i), killedIn(i)));
        }
        List<Step> steps =
                run(
                        "deaths",
                        stages,
                        replicas,
                        EACH * replicas,
                        killedIn(KILLED.size()),
                        () -> System.setProperty("java.home", late),
                        List.of(
                                "schedule.kind=wired-1f1b",
                                "schedule.hold-more=2",
                                "pipeline.processes=per-stage",
                                "recovery.degraded=true",
                                "recovery.max-restarts=100",
                                // a spare process would be there within a step
                                "recovery.spares=0",
                                faults(faults)));
        out.printf(
                Locale.ROOT,
                "%d replicas x %d stages, %d micro-batches of each, a computation takes %d ms%n",
                replicas,
                stages,
                EACH,
                MILLIS_A_COMPUTATION);
        out.printf(
                "%-8s %6s %9s %9s %10s %9s %10s%n",
                "dead", "steps", "before", "seconds", "simulated", "of before", "simulated");
        for (int rank : KILLED) {
            List<Step> without =
                    steps.stream().filter(step -> step.absent().contains(rank)).toList();
            int first = without.isEmpty() ? 0 : steps.indexOf(without.getFirst());
            List<Step> before = steps.subList(Math.max(0, first - COUNTED), first);
            List<Step> following = without.subList(Math.min(1, without.size()), without.size());
            out.printf(
                    Locale.ROOT,
                    "%-8s %6d %9.3f %9.3f %10.3f %9.2f %10.2f%n",
                    "rank " + rank,
                    following.size(),
                    seconds(before),
                    seconds(following),
                    simulated(following),
                    seconds(following) / seconds(before),
                    simulated(following) / simulated(before));
        }
        out.println(
                "before: the %d steps until the rank died; steps: without it, the one in which it died left out, until its process is there again"
                        .formatted(COUNTED));
    }

    private static int killedIn(int death) {
        return 30 + 35 * death;
    }

    // ---- a run ----------------------------------------------------------------------------------

    private static TrainingShape shape(int stages) {
        return new TrainingShape("width 16", stages, 16, 2, 32, 64);
    }

    private static List<Step> run(
            String name,
            int stages,
            int replicas,
            int microBatches,
            int steps,
            Runnable begun,
            List<String> settings) {
        List<String> all =
                new ArrayList<>(
                        List.of(
                                "pipeline.stages=" + stages,
                                "parallel.data=" + replicas,
                                "optimizer.gradient-sum=fixed-point",
                                "device.threads=1",
                                "timeouts={lease=30 s, start=180 s}",
                                "evaluation.every=0"));
        all.addAll(settings);
        var setup =
                new TrainingMeasurement.Setup(
                        name, shape(stages), steps, microBatches, microBatches, all);
        var watcher = new Watcher(stages * replicas, begun);
        return ShortRun.watched(setup, watcher, watcher::steps);
    }

    private static List<String> slow(int stages, String replica, int factor) {
        return IntStream.range(0, stages)
                .mapToObj("{slow-stage=%%d, %sfactor=%d}".formatted(replica, factor)::formatted)
                .toList();
    }

    private static String faults(List<String> faults) {
        return "fault=[%s]".formatted(String.join(", ", faults));
    }

    /** Of the median of the last steps. */
    private static double seconds(List<Step> steps) {
        return median(steps.stream().map(Step::nanos).toList());
    }

    /** The median of the last steps. */
    private static double shareOfSum(List<Step> steps) {
        List<Double> shares =
                new ArrayList<>(
                        steps.subList(steps.size() - COUNTED, steps.size()).stream()
                                .map(step -> 1 / (step.nanos() * step.sum()))
                                .toList());
        Collections.sort(shares);
        return shares.get((shares.size() - 1) / 2);
    }

    private static double simulated(List<Step> steps) {
        return median(steps.stream().map(Step::simulatedNanos).toList());
    }

    private static double median(List<Long> nanos) {
        List<Long> last =
                new ArrayList<>(nanos.subList(Math.max(0, nanos.size() - COUNTED), nanos.size()));
        if (last.isEmpty()) {
            return Double.NaN;
        }
        Collections.sort(last);
        return last.get((last.size() - 1) / 2) / 1e9;
    }
}
