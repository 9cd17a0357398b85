package dev.penstock.runtime.dashboard;

import dev.penstock.actors.spi.RankGrid;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.dashboard.StepSeries.Column;
import dev.penstock.runtime.events.RunEvent;
import dev.penstock.runtime.links.LinkCosts;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleText;
import dev.penstock.schedules.ir.ScheduleTextException;
import dev.penstock.schedules.ir.Wiring;
import dev.penstock.schedules.simulate.CostModel;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.function.BiFunction;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What an event log says about a run so far, and what of it is new. Thread-safe. */
final class RunView {
    private static final Logger LOG = LoggerFactory.getLogger(RunView.class);
    private static final int POINTS = 8_000;
    private static final int UPDATE_ROWS = 500;
    private static final int HAPPENINGS = 2_000;
    private static final long SAMPLED_OPS = 8_000_000;

    private final Path directory;
    private final StepSeries series = new StepSeries();
    private final List<double[]> evaluations = new ArrayList<>();
    private final List<Happening> happenings = new ArrayList<>();
    private final SortedMap<Long, RunEvent.OpTimes> samples = new TreeMap<>();
    private RunEvent.@Nullable Began began;
    private RunEvent.@Nullable Opened opened;
    private RunEvent.@Nullable Ended ended;
    private @Nullable Schedule schedule;

    /** Adds what the run's links take to the costs of computations; null until it is wanted. */
    private @Nullable BiFunction<CostModel, Schedule, CostModel> links;

    private Map<String, List<Long>> rankMicros = Map.of();
    private List<Long> peakBytes = List.of();
    private final Map<String, Long> counts = new TreeMap<>();
    private final Health health = new Health();
    private final StandingBook standing = new StandingBook();
    private long beganAt;
    private long lastSign;
    private int toldRows;
    private int toldEvaluations;
    private long toldHappenings;
    private long allHappenings;
    private boolean mustReload = true;

    /**
     * What happened beside steps.
     *
     * @param step last step before it
     */
    record Happening(long time, long step, String kind, String text) {}

    /**
     * What the page does not know yet.
     *
     * @param reload whether steps are gone, so that the page has to ask for everything again
     * @param rows new steps, by {@link Column}
     * @param standing null if nothing of it is new
     */
    record Update(
            RunHead head,
            boolean reload,
            List<double[]> rows,
            List<double[]> evaluations,
            List<Happening> happenings,
            @Nullable RunStatusView standing) {}

    /** Curves as a whole. */
    record Curves(double[][] columns, List<double[]> evaluations, List<Happening> happenings) {}

    /**
     * What does not change while a process follows a plan.
     *
     * @param stages that each rank holds; empty if the program cannot be read
     * @param microBatches that each rank does, rising, where replicas do each other's; else empty
     * @param absent ranks whose micro-batches others do
     */
    record Facts(
            String name,
            String configuration,
            Map<String, String> environment,
            List<String> devices,
            String fingerprint,
            RankGrid grid,
            List<Long> plannedBytes,
            List<List<Integer>> stages,
            List<List<Integer>> microBatches,
            List<Integer> absent,
            long parameters,
            long tokensPerStep,
            String schedule) {}

    RunView(Path directory) {
        this.directory = directory;
        counts.put("checkpoint", 0L);
        counts.put("recovery", 0L);
        for (RunEvent.Noted.Kind kind : RunEvent.Noted.Kind.values()) {
            counts.put(words(kind), 0L);
        }
    }

    synchronized void apply(RunEvent event) {
        lastSign = Math.max(lastSign, event.time());
        switch (event) {
            case RunEvent.Began begin -> begin(begin);
            case RunEvent.Opened open -> opened = open;
            case RunEvent.Stepped step -> step(step);
            case RunEvent.OpTimes times -> sample(times);
            case RunEvent.Evaluated evaluated ->
                    evaluations.add(new double[] {evaluated.step(), evaluated.loss()});
            case RunEvent.Members members -> standing.on(members);
            case RunEvent.Leases leases -> standing.on(leases);
            case RunEvent.Links links -> standing.on(links);
            case RunEvent.Verified verified -> verify(verified);
            case RunEvent.Saved saved -> save(saved);
            case RunEvent.Recovered recovered -> {
                health.settled();
                happened(recovered.time(), "recovery", recovered.told());
                cutAfter(recovered.fromStep());
            }
            case RunEvent.Noted noted -> {
                health.on(noted, lastStep());
                happened(noted.time(), words(noted.kind()), noted.text());
            }
            case RunEvent.Ended end -> end(end);
        }
    }

    private static String words(RunEvent.Noted.Kind kind) {
        return kind.name().toLowerCase(Locale.ROOT).replace('_', ' ');
    }

    private void save(RunEvent.Saved saved) {
        health.saved();
        standing.on(saved);
        happened(
                saved.time(),
                "checkpoint",
                "checkpoint of step %d: %,d bytes in %,d ms"
                        .formatted(saved.step(), saved.bytes(), saved.micros() / 1000));
    }

    private void verify(RunEvent.Verified verified) {
        health.verified(verified.whole());
        standing.on(verified);
        if (!verified.whole()) {
            happened(
                    verified.time(),
                    "damaged checkpoint",
                    "checkpoint of step %d is not whole: %s"
                            .formatted(verified.step(), verified.problem()));
        }
    }

    /** What is new since the last call. */
    synchronized Update update() {
        boolean reload = mustReload || series.rows() - toldRows > UPDATE_ROWS;
        long unheard = Math.min(allHappenings - toldHappenings, happenings.size());
        var update =
                new Update(
                        head(),
                        reload,
                        reload ? List.of() : series.from(toldRows),
                        reload
                                ? List.of()
                                : List.copyOf(
                                        evaluations.subList(toldEvaluations, evaluations.size())),
                        reload
                                ? List.of()
                                : List.copyOf(
                                        happenings.subList(
                                                happenings.size() - (int) unheard,
                                                happenings.size())),
                        standing.takeNews() ? standing.now() : null);
        toldRows = series.rows();
        toldEvaluations = evaluations.size();
        toldHappenings = allHappenings;
        mustReload = false;
        return update;
    }

    /** How the run stands, and nothing new. */
    synchronized Update quiet() {
        return new Update(head(), false, List.of(), List.of(), List.of(), null);
    }

    /** Members, links and checkpoints. */
    synchronized RunStatusView standing() {
        return standing.now();
    }

    synchronized Curves curves() {
        return new Curves(
                series.thinned(POINTS), List.copyOf(evaluations), List.copyOf(happenings));
    }

    /** Empty before the first line was read. */
    synchronized Optional<Facts> facts() {
        RunEvent.Began begin = began;
        if (begin == null) {
            return Optional.empty();
        }
        RunEvent.Opened open = opened;
        return Optional.of(
                new Facts(
                        begin.name(),
                        begin.configuration(),
                        begin.environment(),
                        open == null ? List.of() : open.devices(),
                        open == null ? "" : open.fingerprint(),
                        begin.grid(),
                        begin.plannedBytes(),
                        stages(begin.grid()),
                        wiring().map(RunView::microBatches).orElse(List.of()),
                        wiring().map(Wiring::absent).orElse(List.of()),
                        begin.parameters(),
                        begin.tokensPerStep(),
                        schedule == null ? "" : schedule.name()));
    }

    private List<List<Integer>> stages(RankGrid grid) {
        Schedule program = schedule;
        if (program == null || program.programs().size() != grid.pipeline()) {
            return List.of();
        }
        return IntStream.range(0, grid.ranks())
                .mapToObj(rank -> program.placement().stagesOf(grid.placeOf(rank).pipeline()))
                .toList();
    }

    private Optional<Wiring> wiring() {
        return Optional.ofNullable(schedule).flatMap(order -> order.placement().wiring());
    }

    private static List<List<Integer>> microBatches(Wiring wiring) {
        return IntStream.range(0, wiring.ranks())
                .mapToObj(rank -> microBatches(wiring, rank))
                .toList();
    }

    /** A rank of a wired order has one stage, numbered as its place in the pipeline. */
    private static List<Integer> microBatches(Wiring wiring, int rank) {
        return wiring.microBatchesOf(wiring.peerOfRank(rank), wiring.pipelineRankOf(rank));
    }

    /** The last step; NaN throughout before the first. */
    synchronized StepSeries.Row lastRow() {
        return series.lastRow();
    }

    /** For Prometheus. */
    synchronized byte[] prometheus() throws IOException {
        RunEvent.Began begin = began;
        List<Long> planned = begin == null ? List.of() : begin.plannedBytes();
        return PrometheusText.of(head(), series.lastRow(), planned, standing.now(), counts);
    }

    /** The program of the ranks, if it can be read. */
    synchronized Optional<Schedule> schedule() {
        return Optional.ofNullable(schedule);
    }

    /** When the ops of a step ran, or of the last one before it that was sampled. */
    synchronized Optional<StepPicture> picture(long step) {
        return sample(step)
                .map(times -> StepPicture.of(times, schedule(), grid(), costs -> linked(costs)));
    }

    private CostModel linked(CostModel costs) {
        Schedule order = schedule;
        RunEvent.Began begin = began;
        if (order == null || begin == null) {
            return costs;
        }
        BiFunction<CostModel, Schedule, CostModel> adding = links;
        if (adding == null) {
            adding = links(begin.configuration());
            links = adding;
        }
        return adding.apply(costs, order);
    }

    /** Tensors take no time where this machine cannot read the run's configuration. */
    private static BiFunction<CostModel, Schedule, CostModel> links(String configuration) {
        try {
            return LinkCosts.adding(
                    ConfigLoader.loadOfRun("the run", configuration, List.of()).config());
        } catch (ConfigException e) {
            LOG.debug("the links of a run are not known", e);
            return (costs, _) -> costs;
        }
    }

    /** Of all ranks; one pipeline alone if the log does not say. */
    synchronized RankGrid grid() {
        RunEvent.Began begin = began;
        return begin == null ? RankGrid.pipeline(1) : begin.grid();
    }

    /** The op times of a step, or of the last one before it that has any. */
    synchronized Optional<RunEvent.OpTimes> sample(long step) {
        SortedMap<Long, RunEvent.OpTimes> before = samples.headMap(step + 1);
        SortedMap<Long, RunEvent.OpTimes> found = before.isEmpty() ? samples : before;
        return found.isEmpty()
                ? Optional.empty()
                : Optional.of(before.isEmpty() ? found.firstEntry() : found.lastEntry())
                        .map(Map.Entry::getValue);
    }

    synchronized RunHead head() {
        RunEvent.Began begin = began;
        RunEvent.Ended end = ended;
        return new RunHead(
                begin == null ? "" : begin.name(),
                directory.toString(),
                end == null ? "running" : end.outcome().name().toLowerCase(Locale.ROOT),
                end == null ? "" : end.reason(),
                health.isRecovering(),
                health.told(lastStep()),
                lastStep(),
                begin == null ? 0 : begin.lastStep(),
                series.last(Column.LOSS),
                series.tokensPerSecond(),
                end == null ? etaSeconds() : Double.NaN,
                beganAt,
                lastSign,
                rankMicros,
                peakBytes,
                List.copyOf(samples.keySet()));
    }

    private long lastStep() {
        return series.rows() == 0 ? resumedStep() : (long) series.last(Column.STEP);
    }

    private long resumedStep() {
        RunEvent.Began begin = began;
        return begin == null ? 0 : begin.resumedStep();
    }

    private void begin(RunEvent.Began begin) {
        boolean again = began != null;
        boolean revised = !begin.revision().isEmpty();
        began = begin;
        ended = null;
        if (revised) { // ranks live where they lived
            health.revised();
        } else {
            opened = null;
            health.settled();
            standing.begin();
        }
        mustReload = true;
        beganAt = again ? beganAt : begin.time();
        links = null;
        samples.clear(); // of another program, perhaps
        try {
            schedule = ScheduleText.parse(begin.schedule());
        } catch (ScheduleTextException e) {
            schedule = null;
        }
        if (again) {
            happened(
                    begin.time(),
                    revised ? "plan" : "resumed",
                    "continues after step %d%s"
                            .formatted(
                                    begin.resumedStep(),
                                    revised ? " with the plan " + begin.revision() : ""));
        }
        cutAfter(begin.resumedStep());
    }

    private void step(RunEvent.Stepped step) {
        if (step.step() <= series.last(Column.STEP)) {
            cutAfter(step.step() - 1);
        }
        RunEvent.Began begin = began;
        double usual = begin == null ? Double.NaN : begin.tokensPerStep();
        double tokens = step.tokens() > 0 ? step.tokens() : usual;
        if (!step.peakBytes().isEmpty()) {
            peakBytes = step.peakBytes();
        }
        series.add(
                step.step(),
                step.loss(),
                step.gradientNorm(),
                step.learningRate(),
                step.stepMicros() / 1e3,
                tokens / step.stepMicros() * 1e6,
                step.bubbleMeasured(),
                step.bubblePredicted(),
                step.time(),
                peakBytes.stream().mapToDouble(Long::doubleValue).max().orElse(Double.NaN));
        health.stepped();
        rankMicros = step.rankMicros();
    }

    private void sample(RunEvent.OpTimes times) {
        samples.put(times.step(), times);
        long ops = times.ranks().stream().mapToLong(rank -> rank.starts().length).sum();
        while (samples.size() > 1 && samples.size() * ops > SAMPLED_OPS) {
            samples.remove(samples.firstKey());
        }
    }

    private void end(RunEvent.Ended end) {
        ended = end;
        health.settled();
        happened(
                end.time(),
                end.outcome().name().toLowerCase(Locale.ROOT),
                end.reason().isEmpty() ? "after step " + end.step() : end.reason());
    }

    private void happened(long time, String kind, String text) {
        happenings.add(new Happening(time, lastStep(), kind, text));
        allHappenings++;
        counts.merge(kind, 1L, Long::sum);
        if (happenings.size() > HAPPENINGS) {
            happenings.removeFirst();
        }
    }

    private void cutAfter(long step) {
        int rows = series.rows();
        series.cutAfter(step);
        boolean fewer = evaluations.removeIf(row -> row[0] > step);
        samples.tailMap(step + 1).clear();
        mustReload |= fewer || series.rows() < rows;
    }

    private double etaSeconds() {
        RunEvent.Began begin = began;
        return begin == null
                ? Double.NaN
                : (begin.lastStep() - series.last(Column.STEP)) * series.secondsPerStep();
    }
}
