package dev.penstock.runtime.launch;

import dev.penstock.actors.dataplane.DataPlane;
import dev.penstock.actors.dataplane.FrameFaults;
import dev.penstock.actors.dataplane.aeron.DriverSettings;
import dev.penstock.actors.dataplane.aeron.MediaDriverHandle;
import dev.penstock.actors.dataplane.direct.TransferRegistry;
import dev.penstock.actors.fault.FaultInjector;
import dev.penstock.actors.fault.ProcessHarm;
import dev.penstock.actors.fault.RecoveryPolicy;
import dev.penstock.actors.rank.RankResources;
import dev.penstock.actors.spi.DegradedPlans;
import dev.penstock.actors.spi.DeviceFactory;
import dev.penstock.actors.spi.PlanReaction;
import dev.penstock.actors.spi.PlanRevision;
import dev.penstock.actors.spi.PlanRevisions;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.StageProgramFactory;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.actors.spi.StepTokens;
import dev.penstock.actors.spi.StepTraffic;
import dev.penstock.cuda.device.Device;
import dev.penstock.runtime.adapt.Adaptation;
import dev.penstock.runtime.adapt.DegradedOrders;
import dev.penstock.runtime.adapt.SpeedModel;
import dev.penstock.runtime.checkpoint.CheckpointDirectory;
import dev.penstock.runtime.checkpoint.CheckpointFolders;
import dev.penstock.runtime.checkpoint.CheckpointIdentity;
import dev.penstock.runtime.checkpoint.DurableFiles;
import dev.penstock.runtime.checkpoint.Retention;
import dev.penstock.runtime.config.reading.Bytes;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.run.CheckpointSection;
import dev.penstock.runtime.config.run.DeviceSection;
import dev.penstock.runtime.config.run.LoadedConfig;
import dev.penstock.runtime.config.run.PipelineSection;
import dev.penstock.runtime.config.run.RankLayout;
import dev.penstock.runtime.config.run.RunConfig;
import dev.penstock.runtime.config.run.ScheduleSection;
import dev.penstock.runtime.data.TrainingData;
import dev.penstock.runtime.launch.devices.ConfiguredDevices;
import dev.penstock.runtime.launch.devices.KernelMemory;
import dev.penstock.runtime.launch.devices.LostGpus;
import dev.penstock.runtime.launch.devices.RankGpus;
import dev.penstock.runtime.links.LinkCosts;
import dev.penstock.runtime.memory.ActivationChoice;
import dev.penstock.runtime.metrics.ConfiguredSteps;
import dev.penstock.runtime.metrics.MetricsFile;
import dev.penstock.runtime.metrics.PipelineMeter;
import dev.penstock.runtime.metrics.RunDirectory;
import dev.penstock.runtime.model.parameters.ParameterSource;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.TrainedParts;
import dev.penstock.runtime.model.stage.GptStageFactory;
import dev.penstock.runtime.report.MemoryPlan;
import dev.penstock.runtime.tokenizer.Tokenizer;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.List;
import java.util.LongSummaryStatistics;
import java.util.Optional;
import java.util.function.Function;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import javax.crypto.SecretKey;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A configuration made into everything a run needs. Every process of a run builds its own from the
 * same configuration; nothing is started here.
 */
public final class RunAssembly implements AutoCloseable {
    /**
     * What the processes of a run start from: the configuration as it is used now, which an
     * evaluation may have changed from the run's own.
     */
    public static final String LAUNCH_CONFIG = "launch.conf";

    /** What the processes of a run on one machine know each other by, while it runs. */
    static final String KEY_FOLDER = "key";

    private static final Logger LOG = LoggerFactory.getLogger(RunAssembly.class);

    /** Exit code of a process whose device is lost. */
    private static final int DEVICE_LOST = 5;

    /** Of the plan that the run began with; itself, where this one is. */
    private final RunAssembly first;

    private final RunParts parts;
    private final RunOptions options;
    private final RunPlan plan;
    private final FaultInjector faults;
    private final GptStageFactory stages;
    private final KernelMemory kernels;
    private final CheckpointDirectory checkpoints;
    private final ConfiguredDataPlane dataPlane;
    private final PipelineMeter meter;
    private final Optional<Adaptation> adaptation;
    private final Optional<DegradedOrders> degraded;

    /** Of all later plans the one that was asked for last: all ranks of a process ask for it. */
    private @Nullable RunAssembly latest;

    /**
     * Puts the parts of a run together.
     *
     * @param parts whose starting point is closed with this assembly
     */
    public RunAssembly(RunParts parts, RunOptions options) {
        this(parts, options, ConfiguredFaults.harm(parts.config()));
    }

    /**
     * Same as {@link #RunAssembly(RunParts, RunOptions)}, in a process that faults harm in a way of
     * its own.
     */
    RunAssembly(RunParts parts, RunOptions options, ProcessHarm harm) {
        this.first = this;
        this.parts = parts;
        this.options = options;
        this.plan = ConfiguredPlan.of(parts, options);
        this.faults = ConfiguredFaults.injector(config(), options.directory(), harm);
        this.stages = stages(parts);
        this.kernels = KernelMemory.of(config(), plan, stages);
        this.checkpoints =
                new CheckpointDirectory(
                        options.directory().resolve(CheckpointFolders.FOLDER),
                        new CheckpointIdentity(
                                ConfiguredModel.modelConfig(config()),
                                plan.hash(),
                                config().run().seed()),
                        retention(options.directory()),
                        faults.forSaves());
        this.dataPlane =
                new ConfiguredDataPlane(config().dataPlane(), options.runId(), faults.forFrames());
        this.meter =
                new PipelineMeter(plan.training(), plan.programGrid(), LinkCosts.adding(config()));
        this.adaptation = adaptation();
        this.degraded =
                config().recovery().degraded() && !options.evaluateOnly()
                        ? Optional.of(new DegradedOrders(plan, new Reviser(this)))
                        : Optional.empty();
    }

    /** The same run where it follows another plan: they share all that does not depend on it. */
    private RunAssembly(RunAssembly first, PlanRevision asked) {
        this.first = first;
        this.parts = first.parts.with(asked.settings());
        this.options = first.options;
        RunPlan made = ConfiguredPlan.of(parts, options);
        this.plan =
                made.as(
                        new PlanRevision(
                                asked.number(), asked.settings(), made.hash(), asked.reason()),
                        first.plan.hash());
        this.faults = first.faults;
        this.stages = stages(parts);
        this.kernels = KernelMemory.of(config(), plan, stages);
        this.checkpoints = first.checkpoints;
        this.dataPlane = first.dataPlane;
        this.meter = first.meter;
        this.adaptation = first.adaptation;
        this.degraded = first.degraded;
    }

    private static GptStageFactory stages(RunParts parts) {
        var stages =
                new GptStageFactory(
                                parts.model(),
                                parts.schedule().budgets(),
                                parts.data(),
                                ParameterSource.none())
                        .startingAfter(parts.start().completedSteps(), parts.start().parameters())
                        .following(parts.schedule().passes());
        return parts.config().pairsAtOnce() ? stages.withPairsAtOnce() : stages;
    }

    private Optional<Adaptation> adaptation() {
        PipelineSection section = config().pipeline();
        if (!config().adapts() || options.evaluateOnly()) {
            return Optional.empty();
        }
        return Optional.of(
                new Adaptation(
                        section.adaptEvery(),
                        section.adaptMargin(),
                        config().adaptsAtOnce(),
                        meter,
                        speeds(this),
                        new Reviser(this)));
    }

    /**
     * @param first plan of the run, whose configuration says what may change
     */
    private SpeedModel speeds(RunAssembly first) {
        ScheduleSection section = config().schedule();
        return new SpeedModel(
                new SpeedModel.Order(
                        section.kind().word(),
                        section.costs(),
                        plan.training(),
                        parts.schedule().inFlight()),
                model().partition(),
                new TrainedParts(model().shape(), model().fineTuning()),
                first.config().pipeline().measured() || first.config().rebalancesLayers(),
                new CandidateOrders(first.parts, plan.absent()),
                LinkCosts.adding(config()),
                plan.steps().last());
    }

    /**
     * The orders that the configuration names, as far as they have the stages of its own; its own
     * with other wirings, where these follow what is measured.
     *
     * @param absent ranks that take no part
     */
    private record CandidateOrders(RunParts parts, List<Integer> absent)
            implements SpeedModel.Candidates {
        @Override
        public List<String> kinds() {
            ScheduleSection section = parts.config().schedule();
            if (section.measured()) {
                return List.of(section.kind().word());
            }
            return section.candidates().isEmpty()
                    ? List.of()
                    : Stream.concat(Stream.of(section.kind()), section.candidates().stream())
                            .map(ScheduleSection.Kind::word)
                            .distinct()
                            .toList();
        }

        @Override
        public Optional<SpeedModel.Order> order(String kind, List<Integer> costs) {
            try {
                ProvedSchedule proved = parts.candidate(kind, costs, absent);
                return Optional.of(
                        new SpeedModel.Order(kind, costs, proved.training(), proved.inFlight()));
            } catch (ConfigException e) {
                return Optional.empty(); // it does not run in this shape
            }
        }
    }

    /** Makes plans of a run with other stages. */
    private record Reviser(RunAssembly first) implements Adaptation.Reviser {
        @Override
        public Optional<Adaptation.Revised> revise(
                int number, List<String> settings, String reason) {
            var changed = settings.stream().filter(first::changes).toList();
            var revision = new PlanRevision(number, changed, "", reason);
            try {
                RunAssembly revised = first.revisedBy(revision);
                return Optional.of(
                        new Adaptation.Revised(revised.plan, revised.fits(), revised.crowded()));
            } catch (ConfigException e) {
                LOG.warn("no plan comes of {}: {}", revision.words(), e.getMessage());
                return Optional.empty();
            }
        }

        @Override
        public SpeedModel model(PlanRevision plan) {
            return first.following(plan).speeds(first);
        }
    }

    private boolean changes(String setting) {
        return !setting.equals("schedule.kind=" + config().schedule().kind().word())
                && !setting.equals("schedule.costs=" + config().schedule().costs())
                && !setting.equals("schedule.without=" + plan.absent())
                && !setting.equals("pipeline.partition=" + model().partition().layersPerStage());
    }

    /** Whether each rank may hold what this plan needs, and their machine all of it. */
    boolean fits() {
        long limit = config().device().memoryLimit().map(Bytes::bytes).orElse(Long.MAX_VALUE);
        long machine =
                config().device().kind().isCuda()
                        ? Long.MAX_VALUE
                        : parts.machineBytes().orElse(Long.MAX_VALUE);
        LongSummaryStatistics ranks =
                plannedMemory().stream().mapToLong(MemoryPlan::total).summaryStatistics();
        return ranks.getMax() <= limit && ranks.getSum() <= machine;
    }

    /** The stages of ranks that may not hold what this plan needs, rising. */
    private List<Integer> crowded() {
        Optional<Long> limit = config().device().memoryLimit().map(Bytes::bytes);
        List<MemoryPlan> planned = limit.isPresent() ? plannedMemory() : List.of();
        return IntStream.range(0, planned.size())
                .filter(rank -> planned.get(rank).total() > limit.orElseThrow())
                .flatMap(rank -> plan.stagesOf(rank).stream().mapToInt(stage -> stage))
                .distinct()
                .sorted()
                .boxed()
                .toList();
    }

    /**
     * The same run where it follows a later plan. They share what does not depend on that: of all
     * of them, one is closed.
     *
     * @throws IllegalStateException if another plan comes of its settings here
     */
    public RunAssembly following(PlanRevision revision) {
        if (revision.equals(plan.revision())) {
            return this;
        }
        if (revision.equals(first.plan.revision())) {
            return first;
        }
        return first.later(revision);
    }

    private synchronized RunAssembly later(PlanRevision revision) {
        if (latest != null && latest.plan.revision().equals(revision)) {
            return latest;
        }
        RunAssembly revised = revisedBy(revision);
        if (!revised.plan.revision().equals(revision)) {
            throw new IllegalStateException(
                    "another plan comes of %s here: expected hash %s, got %s; start all nodes with the same version"
                            .formatted(
                                    revision.words(),
                                    revision.hash(),
                                    revised.plan.revision().hash()));
        }
        latest = revised;
        return revised;
    }

    /** The run with a later plan, whose hash nobody has said. */
    RunAssembly revisedBy(PlanRevision asked) {
        return new RunAssembly(first, asked);
    }

    private PlanRevisions.Revised revised(PlanRevision revision) {
        RunAssembly there = following(revision);
        return new PlanRevisions.Revised(there.plan, there.programs());
    }

    /** Who makes plans without ranks that are lost. */
    public DegradedPlans degradedPlans() {
        return degraded.<DegradedPlans>map(Function.identity()).orElse(DegradedPlans.NONE);
    }

    /** Who may want another plan while the run goes on. */
    public PlanReaction reaction() {
        return adaptation.<PlanReaction>map(Function.identity()).orElse(PlanReaction.NONE);
    }

    /**
     * Watchers of the run that act on it.
     *
     * @param told what they have to say
     */
    List<? extends RunListener> reacting(RunListener told) {
        meter.follow(plan.training()); // another process may have led the run to this plan
        adaptation.ifPresent(each -> each.begin(told, plan.revision()));
        degraded.ifPresent(each -> each.begin(told, plan));
        return Stream.<RunListener>concat(adaptation.stream(), degraded.stream()).toList();
    }

    /** Of the run's steps; shared with whoever looks at them. */
    PipelineMeter meter() {
        return meter;
    }

    private Retention retention(Path directory) {
        CheckpointSection settings = config().checkpoint();
        Path metrics = new RunDirectory(directory).metrics();
        return settings.keepBest()
                ? new Retention(settings.retain(), () -> MetricsFile.validationLosses(metrics))
                : Retention.newest(settings.retain());
    }

    /**
     * Builds everything and checks that it fits together.
     *
     * @throws dev.penstock.runtime.config.ConfigException with all problems of data, order, memory
     *     and what to start from
     */
    public static RunAssembly of(LoadedConfig loaded, RunOptions options) {
        return new RunAssembly(
                RunParts.prepare(loaded.asDraft(), options.start(), List.of()), options);
    }

    public RunConfig config() {
        return parts.config();
    }

    /** What was chosen to fit into memory, and why; empty where nothing was to be chosen. */
    Optional<String> activationReason() {
        return parts.activations().map(ActivationChoice::reason);
    }

    /** Why tensors travel in the form in which they do; empty where the configuration says it. */
    Optional<String> codecReason() {
        return parts.codec().map(chosen -> chosen.reason(config()));
    }

    /** What the configuration says and has no effect, for people. */
    List<String> notes() {
        return parts.notes();
    }

    public RunOptions options() {
        return options;
    }

    public RunPlan plan() {
        return plan;
    }

    public GptSettings model() {
        return parts.model();
    }

    public Tokenizer tokenizer() {
        return parts.tokenizer();
    }

    public TrainingData data() {
        return parts.data();
    }

    /** Device memory that each rank will hold; entry r is rank r's. */
    public List<MemoryPlan> plannedMemory() {
        return plannedMemory(false, homes());
    }

    /**
     * Device memory of ranks that live in these processes.
     *
     * @param betweenHosts whether these may be on several hosts
     * @param homes by rank, the lowest rank that lives in the same process
     */
    public List<MemoryPlan> plannedMemory(boolean betweenHosts, List<Integer> homes) {
        return new PlannedMemory(
                        plan,
                        model(),
                        stages,
                        kernels,
                        dataPlane.keepsSentTensors(betweenHosts),
                        config().device().kind().isCuda(),
                        config().library(),
                        homes,
                        ConfiguredPlan.meeting(config(), homes))
                .ofAllRanks();
    }

    /**
     * The room that each rank needs, by this plan or the run's first: one that is absent now may
     * come back. Parameters as for {@link #plannedMemory(boolean, List)}.
     */
    public List<Long> plannedBytes(boolean betweenHosts, List<Integer> homes) {
        List<MemoryPlan> now = plannedMemory(betweenHosts, homes);
        List<MemoryPlan> atFirst = first == this ? now : first.plannedMemory(betweenHosts, homes);
        return IntStream.range(0, now.size())
                .mapToObj(rank -> Math.max(now.get(rank).total(), atFirst.get(rank).total()))
                .toList();
    }

    /**
     * Bytes that each rank sends to others in a training step, by use; entry r is rank r's.
     *
     * @param homes by rank, the lowest rank that lives in the same process
     */
    List<StepTraffic> plannedTraffic(List<Integer> homes) {
        List<Integer> meeting = ConfiguredPlan.meeting(config(), homes);
        return new PlannedTraffic(plan, model(), homes, meeting).ofAllRanks();
    }

    /** As long as nobody has died, on one host. */
    List<Integer> homes() {
        return ConfiguredPlan.homes(config());
    }

    /** Every rank in a process of its own. */
    List<Integer> apart() {
        return IntStream.range(0, plan.ranks()).boxed().toList();
    }

    /**
     * FLOPs of each rank's stages per token: its share of the model's work. Where replicas share
     * micro-batches, of as many tokens as one has on average.
     */
    public double[] shares() {
        var partition = model().partition();
        double[] shares = new double[plan.ranks()];
        for (int rank = 0; rank < shares.length; rank++) {
            for (int stage : plan.stagesOf(rank)) {
                shares[rank] +=
                        partition.flopsPerToken(model().shape(), stage) * partOfStep(rank, stage);
            }
        }
        return shares;
    }

    private double partOfStep(int rank, int stage) {
        return plan.training()
                .placement()
                .wiring()
                .map(
                        wiring ->
                                wiring.microBatchesOf(wiring.peerOfRank(rank), stage).size()
                                        * (double) wiring.peers()
                                        / wiring.microBatches())
                .orElse(1.0);
    }

    /** What the metrics of a run say of its steps. */
    public ConfiguredSteps steps() {
        int sequences = config().batch().sequences();
        int context = config().model().context();
        double share = data().meanTokens(context) / context;
        long full = Math.max(sequences, Math.round(share * model().tokensPerStep()));
        long stepsOfEpoch = data().stepsOfEpoch();
        int left = data().sequences(StepKind.TRAIN, stepsOfEpoch, sequences);
        return new ConfiguredSteps(
                new StepTokens(full, stepsOfEpoch, full * left / sequences),
                model().optimizer().learningRate()::at,
                RankLayout.of(config().resolved()));
    }

    /** Whether the tokens are text, so that a model can be asked to write some. */
    public boolean readsText() {
        return data().isText();
    }

    /** Opens one more device as the ranks have them; the caller closes it. */
    public Device openDevice() {
        return devices().open(0);
    }

    /** Removes what earlier, torn saves left; once, before anything is saved. */
    public void sweepCheckpoints() {
        checkpoints.sweep();
    }

    /**
     * Makes one file of the stages' gradients, if they were asked for and their step was reached.
     */
    public void mergeGradientDump() {
        options.dump()
                .ifPresent(
                        dump ->
                                GradientDump.merge(
                                        dump, model().partition().stages(), plan.grid()));
    }

    /** Waits for what goes on behind a published checkpoint; lets go of what the run began from. */
    @Override
    public void close() {
        checkpoints.close();
        parts.start().close();
    }

    /**
     * Leaves what a stage's own process needs to build the same assembly in the run's directory.
     */
    public void writeForStageProcesses() {
        Path file = options.directory().resolve(LAUNCH_CONFIG);
        try {
            options.write();
            DurableFiles.write(file, config().resolved());
        } catch (IOException e) {
            throw new UncheckedIOException("cannot write " + file, e);
        }
    }

    /** What this process gives to the ranks that it hosts. */
    public RankResources resources(DataPlane joined) {
        DeviceFactory devices = devices();
        boolean direct =
                config().dataPlane().deviceCopies()
                        && faults.forFrames().equals(FrameFaults.NONE); // they need frames to harm
        RankResources resources =
                RankResources.of(plan, devices, programs(), joined, checkpoints)
                        .withFaults(faults)
                        .withTransfers(new TransferRegistry(direct))
                        .withLibrary(config().library())
                        .withRevisions(this::revised);
        return devices instanceof RankGpus gpus ? resources.whenDeviceLost(gpus) : resources;
    }

    /**
     * Same as {@link #resources}, in a process that can be spared: it ends when a rank's device is
     * lost, which proves the death of its ranks, and another process opens another device.
     */
    public RankResources resourcesToEndWith(DataPlane joined) {
        return resources(joined)
                .whenDeviceLost(
                        (_, _, reason) -> {
                            LOG.error("this process ends: {}", reason);
                            Runtime.getRuntime().halt(DEVICE_LOST);
                        });
    }

    public CheckpointDirectory checkpoints() {
        return checkpoints;
    }

    /** How deaths are to be met. */
    public RecoveryPolicy recoveryPolicy() {
        return ConfiguredRecovery.of(config().recovery());
    }

    /** Settings for this run's media driver. */
    public DriverSettings driverSettings() {
        return dataPlane.driver(plan.ranks(), false);
    }

    /** Settings for the media driver of one of this run's hosts. */
    public DriverSettings driverSettingsOfHost() {
        return dataPlane.driver(plan.ranks(), mayCrossHosts());
    }

    /** Whether the configuration lets ranks be on several hosts. */
    public boolean mayCrossHosts() {
        return dataPlane.mayCrossHosts();
    }

    /** The media driver that the configuration names, instead of one of the run's own. */
    Optional<MediaDriverHandle> runningDriver() {
        return config().dataPlane().mediaDriver().map(MediaDriverHandle::running);
    }

    /** Joins the media driver in this directory. */
    public DataPlane openDataPlane(Path driverDirectory) {
        return openDataPlane(driverDirectory, Optional.empty());
    }

    /**
     * Joins the media driver in this directory.
     *
     * @param key of the run, for frames over UDP
     */
    public DataPlane openDataPlane(Path driverDirectory, Optional<SecretKey> key) {
        return new RestartableDataPlane(
                driverDirectory, (directory, _) -> dataPlane.open(directory, key));
    }

    /**
     * Joins the media driver in this directory, for a run whose ranks may be on several hosts.
     *
     * @param here where this process listens, unless the configuration names a host
     * @param key of the run, for frames between hosts
     */
    public DataPlane openDataPlaneBetweenHosts(
            Path driverDirectory, NodeInterface here, Optional<SecretKey> key) {
        return new RestartableDataPlane(
                driverDirectory,
                (directory, former) -> dataPlane.openBetweenHosts(directory, here, key, former));
    }

    private DeviceFactory devices() {
        DeviceSection section = config().device();
        return section.kind().isCuda()
                ? ConfiguredDevices.gpus(section, plan.ranks(), new LostGpus(options.directory()))
                : ConfiguredDevices.of(section, plan.ranks());
    }

    private StageProgramFactory programs() {
        StageProgramFactory programs =
                new RunStages(stages, options.directory().resolve(CheckpointFolders.FOLDER));
        if (options.dump().isPresent()) {
            var dump = options.dump().get();
            programs =
                    new DecoratedStages(
                            programs, (stage, place) -> new GradientDump(stage, place, dump));
        }
        AuditTrail books = AuditTrail.of(options.directory());
        if (books.isKept()) {
            programs =
                    new DecoratedStages(
                            programs, (stage, place) -> new AuditedStage(stage, place, books));
        }
        return programs;
    }
}
