package dev.penstock.runtime.launch;

import dev.penstock.actors.spi.PlanRevision;
import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.StepTokens;
import dev.penstock.runtime.config.run.ModelSection;
import dev.penstock.runtime.config.run.RunConfig;
import dev.penstock.runtime.dashboard.DashboardServer;
import dev.penstock.runtime.events.EventLog;
import dev.penstock.runtime.events.RunEvent;
import dev.penstock.runtime.lengths.LengthCosts;
import dev.penstock.runtime.lengths.UnequalSteps;
import dev.penstock.runtime.links.LinkCosts;
import dev.penstock.runtime.metrics.ListenerFanOut;
import dev.penstock.runtime.metrics.MetricsWriter;
import dev.penstock.runtime.metrics.PipelineMeter;
import dev.penstock.runtime.metrics.Quantities;
import dev.penstock.runtime.metrics.RunDirectory;
import dev.penstock.runtime.metrics.StragglerWatch;
import dev.penstock.runtime.metrics.TaskMetrics;
import dev.penstock.runtime.report.FaultOutcome;
import dev.penstock.runtime.report.MemoryPlan;
import dev.penstock.runtime.report.RecoveryBook;
import dev.penstock.runtime.report.RunEnding;
import dev.penstock.runtime.report.RunFacts;
import dev.penstock.runtime.report.RunRecorder;
import dev.penstock.runtime.report.RunReport;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleText;
import dev.penstock.schedules.simulate.InFlight;
import java.io.IOException;
import java.time.Duration;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What a run leaves in its directory beside checkpoints: metrics while it goes on, a report at its
 * end. Close it when nothing more will be measured, then write the report.
 */
public final class RunRecord implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(RunRecord.class);

    private final RunDirectory directory;
    private volatile RunAssembly assembly;

    /** Of earlier plans of the run, the most that each rank held. */
    private volatile List<MemoryPlan> planned = List.of();

    private final boolean betweenHosts;
    private final long recorded;
    private final PlacedRanks placed;
    private final RunConfig config;
    private final PipelineMeter meter;
    private final RunRecorder recorder;
    private final MetricsWriter metrics;
    private final EventLog events;
    private final @Nullable DashboardServer dashboard;
    private final RecoveryBook recoveries = new RecoveryBook(InstantSource.system());

    /**
     * Opens the metrics file.
     *
     * @param assembly stays the caller's
     * @param betweenHosts whether its ranks live on nodes, which may be on several hosts
     */
    public RunRecord(RunAssembly assembly, RunDirectory directory, boolean betweenHosts) {
        this(assembly, directory, betweenHosts, assembly.plan().steps().completed());
    }

    /**
     * Goes on with the metrics of a run that another process recorded before.
     *
     * @param recorded the newest step whose line may stay
     */
    public RunRecord(
            RunAssembly assembly, RunDirectory directory, boolean betweenHosts, long recorded) {
        this.directory = directory;
        this.assembly = assembly;
        this.betweenHosts = betweenHosts;
        this.recorded = recorded;
        this.placed = new PlacedRanks(betweenHosts ? assembly.apart() : assembly.homes());
        this.config = assembly.config();
        this.meter = assembly.meter();
        var steps = assembly.plan().steps();
        this.recorder =
                new RunRecorder(
                        config.report().traceSteps().isEmpty()
                                ? RunRecorder.defaultSteps(steps.completed(), steps.last())
                                : config.report().traceSteps().stream()
                                        .map(Integer::longValue)
                                        .toList());
        this.metrics =
                new MetricsWriter(
                        directory.metrics(),
                        recorded,
                        meter,
                        assembly.steps(),
                        InstantSource.system());
        metrics.catchUp(directory.committedStep());
        this.events =
                new EventLog(
                        directory.events(),
                        began(recorded, ""),
                        meter,
                        assembly.steps(),
                        config.report().opTimesEvery(),
                        InstantSource.system());
        assembly.checkpoints().tellOfVerification(events::onVerified);
        this.dashboard = config.report().dashboard() ? serve() : null;
        ConfiguredModel.tuningWords(config).ifPresent(words -> LOG.info("fine-tuning: {}", words));
    }

    /** A page that cannot be shown costs the page and nothing else. */
    private @Nullable DashboardServer serve() {
        int port = config.report().dashboardPort();
        try {
            return DashboardServer.start(directory, port);
        } catch (IOException e) {
            LOG.warn(
                    "no dashboard: cannot listen on 127.0.0.1:{} ({}); try another"
                            + " report.dashboard-port, or 0 for any",
                    port,
                    e.getMessage());
            return null;
        }
    }

    /** Of the run's program; shared with whoever shows progress. */
    public PipelineMeter meter() {
        return meter;
    }

    /** That the steps train on. */
    public StepTokens tokens() {
        return assembly.steps().tokens();
    }

    /** Records the figures of a task. */
    public void onTask(TaskMetrics task) {
        metrics.onTask(task);
    }

    /** Records what it is told, looks for stragglers, and hands all on. */
    public RunListener listener(RunListener next) {
        var told = new ListenerFanOut(List.of(placed, metrics, events, recorder, recoveries, next));
        var stragglers =
                new StragglerWatch(
                        assembly.plan().training(),
                        assembly.plan().programGrid(),
                        assembly.shares(),
                        told);
        List<RunListener> all =
                new ArrayList<>(List.of(new Follower(stragglers), told, stragglers));
        all.addAll(assembly.reacting(told));
        return new ListenerFanOut(all);
    }

    /** Follows the run's plan, before all others that are told of it. */
    private final class Follower implements RunListener {
        private final StragglerWatch stragglers;

        Follower(StragglerWatch stragglers) {
            this.stragglers = stragglers;
        }

        @Override
        public void onRevised(PlanRevision revision, Schedule training, long completed) {
            planned = memory();
            assembly = assembly.following(revision);
            meter.follow(training);
            recorder.followOther();
            events.follow(began(completed, revision.words()));
            stragglers.follow(training, assembly.shares());
            LOG.info("from step {} on: {}", completed + 1, revision.words());
        }
    }

    /** The first lines of a run: what is trained, on what, in which order, and where. */
    public List<String> banner() {
        var shape = assembly.model().shape();
        var lines =
                new ArrayList<String>(
                        List.of(
                                "%s: %s parameters (%d layers, width %d, %d heads, context %d, vocabulary %d)"
                                        .formatted(
                                                config.run().name(),
                                                Quantities.count(shape.parameters()),
                                                shape.layers(),
                                                shape.width(),
                                                shape.heads(),
                                                shape.context(),
                                                shape.vocabulary()),
                                "data: " + assembly.data().description(),
                                "pipeline: %d stages of %s layers, %s, %d micro-batches of %d sequences"
                                        .formatted(
                                                assembly.model().partition().stages(),
                                                assembly.model().partition().layersPerStage(),
                                                assembly.plan().training().name(),
                                                assembly.plan().training().shape().microBatches(),
                                                config.batch().sequencesPerMicroBatch())));
        assembly.data().counted().stream()
                .flatMap(counted -> counted.notes().stream())
                .forEach(note -> lines.add(2, "note: " + note));
        assembly.notes().forEach(note -> lines.add(2, "note: " + note));
        ConfiguredModel.tuningWords(config)
                .ifPresent(words -> lines.add(1, "fine-tuning: " + words));
        config.dataPlane()
                .codecWords(config.pipeline().stages(), config.chunks())
                .ifPresent(words -> lines.add("links: " + words));
        assembly.codecReason().ifPresent(reason -> lines.add("chosen codec: " + reason));
        assembly.activationReason()
                .ifPresent(reason -> lines.add("chosen for the memory limit: " + reason));
        config.dataPlane()
                .emulatedWords(config.grid().ranks())
                .ifPresent(words -> lines.add("emulated links: " + words));
        ModelSection.kindsOfStages(shape, assembly.model().partition())
                .ifPresent(words -> lines.add("kinds of layers: " + words));
        RankGrid grid = assembly.plan().grid();
        if (!grid.isPipelineAlone()) {
            lines.add(
                    "ranks: %d = %d stages x %s tensor shards x %d context parts x %d replicas"
                            .formatted(
                                    grid.ranks(),
                                    grid.pipeline(),
                                    grid.isUneven() ? grid.shards() : grid.tensor(),
                                    grid.context(),
                                    grid.data()));
            if (!assembly.plan().absent().isEmpty()) {
                lines.add(
                        "absent ranks: %s; others that hold their stages do their micro-batches"
                                .formatted(assembly.plan().absent()));
            }
            assembly.model().vocabularyNote().ifPresent(note -> lines.add("note: " + note));
            CollectivesNote.of(config).ifPresent(lines::add);
        }
        RunParts.unequalSteps(assembly.data(), assembly.model())
                .map(steps -> "lengths: " + simulated(steps).words())
                .ifPresent(lines::add);
        List<Integer> slices = assembly.plan().training().shape().sliceLengths();
        if (slices.size() > 1) {
            lines.add("token slices: " + slices);
            SliceNote.of(slices, config.device().reductionBlock())
                    .ifPresent(note -> lines.add("note: " + note));
        }
        lines.add("run directory: " + directory.path());
        if (dashboard != null) {
            lines.add("dashboard: " + dashboard.url());
        }
        return lines;
    }

    private UnequalSteps.Times simulated(UnequalSteps steps) {
        return steps.simulate(
                assembly.plan().training(),
                LengthCosts.whole(assembly.model().shape(), assembly.model().partition()),
                InFlight.auto(assembly.plan().training()));
    }

    /**
     * Ends metrics and events, and writes the report. The page stays until {@link #close}.
     *
     * @return a summary for people
     */
    public String report(RunOutcome outcome, Duration took, Optional<String> sample) {
        endLogs();
        EventLog.appendEnd(directory.events(), outcome, InstantSource.system());
        return new RunReport(directory, facts(), recorder)
                .write(RunEnding.of(outcome, took, sample).since(recorded));
    }

    /** Why the last steps are in no checkpoint; empty if they are. */
    public Optional<String> unsaved() {
        return recorder.unsaved();
    }

    /** The most that each rank holds by any plan that the run has followed. */
    private List<MemoryPlan> memory() {
        List<MemoryPlan> now =
                assembly.plannedMemory(betweenHosts && assembly.mayCrossHosts(), placed.atFirst());
        List<MemoryPlan> most = new ArrayList<>();
        for (int rank = 0; rank < now.size(); rank++) {
            MemoryPlan before = rank < planned.size() ? planned.get(rank) : now.get(rank);
            most.add(before.total() > now.get(rank).total() ? before : now.get(rank));
        }
        return most;
    }

    private RunEvent.Began began(long recorded, String revision) {
        return new RunEvent.Began(
                System.currentTimeMillis(),
                RunEvent.VERSION,
                config.run().name(),
                recorded,
                assembly.plan().steps().last(),
                tokens().full(),
                assembly.model().shape().parameters(),
                ScheduleText.print(assembly.plan().training()),
                assembly.plan().programGrid(),
                memory().stream().map(MemoryPlan::total).toList(),
                config.resolved(),
                environment(),
                revision);
    }

    private Map<String, String> environment() {
        Map<String, String> environment = new LinkedHashMap<>();
        environment.put(
                "host",
                "%s %s, %d processors"
                        .formatted(
                                System.getProperty("os.name"),
                                System.getProperty("os.arch"),
                                Runtime.getRuntime().availableProcessors()));
        environment.put("java", Runtime.version().toString());
        environment.put(
                "penstock",
                "%s, supervisor with pid %d"
                        .formatted(BuiltVersion.text(), ProcessHandle.current().pid()));
        environment.put("data", assembly.data().description());
        ConfiguredModel.tuningWords(config)
                .ifPresent(words -> environment.put("fine-tuning", words));
        ModelSection.kindsOfStages(assembly.model().shape(), assembly.model().partition())
                .ifPresent(words -> environment.put("layers of stages", words));
        return environment;
    }

    private RunFacts facts() {
        return new RunFacts(
                config.run().name(),
                config.resolved(),
                assembly.plan().training(),
                assembly.plan().programGrid(),
                assembly.plan().steps().last(),
                tokens().full(),
                assembly.model().shape().parameters(),
                memory(),
                assembly.plannedTraffic(placed.now()),
                this::faults,
                LinkCosts.adding(config),
                environment());
    }

    private List<FaultOutcome> faults() {
        return FaultOutcome.of(
                ConfiguredFaults.plan(config),
                ConfiguredFaults.markers(directory.path()),
                recoveries.all());
    }

    private void endLogs() {
        metrics.close();
        events.close();
    }

    @Override
    public void close() {
        endLogs();
        if (dashboard != null) {
            dashboard.close();
        }
    }
}
