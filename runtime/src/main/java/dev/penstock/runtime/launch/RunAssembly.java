package dev.penstock.runtime.launch;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.DataPlane;
import dev.penstock.actors.dataplane.FrameKind;
import dev.penstock.actors.dataplane.aeron.AeronDataPlane;
import dev.penstock.actors.dataplane.aeron.AeronSettings;
import dev.penstock.actors.dataplane.aeron.DriverSettings;
import dev.penstock.actors.dataplane.aeron.PollerMode;
import dev.penstock.actors.shard.BoundaryMemory;
import dev.penstock.actors.shard.RankResources;
import dev.penstock.actors.spi.DeviceFactory;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.RunSteps;
import dev.penstock.actors.spi.StageProgramFactory;
import dev.penstock.actors.spi.Timeouts;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.runtime.checkpoint.CheckpointDirectory;
import dev.penstock.runtime.checkpoint.CheckpointFolders;
import dev.penstock.runtime.checkpoint.CheckpointIdentity;
import dev.penstock.runtime.checkpoint.Gpt2Config;
import dev.penstock.runtime.config.Bytes;
import dev.penstock.runtime.config.ConfigException;
import dev.penstock.runtime.config.DataSection;
import dev.penstock.runtime.config.DeviceSection;
import dev.penstock.runtime.config.LoadedConfig;
import dev.penstock.runtime.config.Problem;
import dev.penstock.runtime.config.RunConfig;
import dev.penstock.runtime.data.DataException;
import dev.penstock.runtime.data.DataFormat;
import dev.penstock.runtime.data.DataSpec;
import dev.penstock.runtime.data.TrainingData;
import dev.penstock.runtime.model.AdamWSettings;
import dev.penstock.runtime.model.BatchShape;
import dev.penstock.runtime.model.GptSettings;
import dev.penstock.runtime.model.GptShape;
import dev.penstock.runtime.model.GptStageFactory;
import dev.penstock.runtime.model.LearningRate;
import dev.penstock.runtime.model.Precision;
import dev.penstock.runtime.model.StageMemory;
import dev.penstock.runtime.model.StagePartition;
import dev.penstock.runtime.tokenizer.Tokenizer;
import dev.penstock.schedules.ir.Channel;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleText;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;

/**
 * A configuration made into everything a run needs. Every process of a run builds its own from the
 * same configuration; nothing is started here.
 */
public final class RunAssembly implements AutoCloseable {
    /**
     * What the processes of a run start from: the configuration as it is used now, which an
     * evaluation may have changed from the run's own.
     */
    static final String LAUNCH_CONFIG = "launch.conf";

    private static final int STREAM_BASE = 1000;
    private static final Duration STALL_LIMIT = Duration.ofSeconds(60);

    private final RunConfig config;
    private final RunOptions options;
    private final Tokenizer tokenizer;
    private final TrainingData data;
    private final ProvedSchedule schedule;
    private final GptSettings model;
    private final GptStageFactory stages;
    private final CheckpointDirectory checkpoints;
    private final StartingPoint start;
    private final RunPlan plan;

    private RunAssembly(LoadedConfig loaded, RunOptions options) {
        this.config = loaded.config();
        this.options = options;
        this.tokenizer = Tokenizer.named(config.data().tokenizer().name().toLowerCase(Locale.ROOT));
        List<Problem> problems = new ArrayList<>();
        Optional<ProvedSchedule> proved = attempt(() -> ProvedSchedule.of(loaded), problems);
        Optional<TrainingData> opened = attempt(() -> openData(loaded), problems);
        if (!problems.isEmpty()) {
            throw new ConfigException(problems);
        }
        this.schedule = proved.orElseThrow();
        this.data = opened.orElseThrow();
        this.model = settings();
        this.start = StartingPoint.of(options, gpt2Config());
        requireStepsToGo(loaded);
        this.stages = new GptStageFactory(model, schedule.budgets(), data, start.parameters());
        requireMemory(loaded);
        String hash = hash();
        this.checkpoints =
                new CheckpointDirectory(
                        options.directory().resolve(CheckpointFolders.FOLDER),
                        new CheckpointIdentity(gpt2Config(), hash, config.run().seed()),
                        config.checkpoint().retain());
        this.plan = plan(hash);
    }

    /**
     * Builds everything and checks that it fits together.
     *
     * @throws ConfigException with all problems of data, order and memory at their keys
     * @throws dev.penstock.runtime.checkpoint.CheckpointException if a checkpoint to start from
     *     does not fit
     */
    public static RunAssembly of(LoadedConfig loaded, RunOptions options) {
        return new RunAssembly(loaded, options);
    }

    public RunConfig config() {
        return config;
    }

    public RunOptions options() {
        return options;
    }

    public RunPlan plan() {
        return plan;
    }

    public ProvedSchedule schedule() {
        return schedule;
    }

    public GptSettings model() {
        return model;
    }

    public Tokenizer tokenizer() {
        return tokenizer;
    }

    public TrainingData data() {
        return data;
    }

    /** Device memory that a stage will hold, boundary tensors apart. */
    public StageMemory predictedMemory(int stage) {
        return stages.predictedMemory(stage);
    }

    /**
     * Device memory that each rank will hold: its stages, and the boundary tensors of its programs.
     * Entry r is rank r's.
     */
    public List<Long> plannedBytes() {
        GptShape shape = model.shape();
        long boundaryBytes = (long) model.batch().largestRows() * shape.width() * Float.BYTES;
        long sharedGradientElements = shape.tied() ? (long) shape.vocabulary() * shape.width() : 0;
        List<Long> planned = new ArrayList<>();
        for (int rank = 0; rank < plan.ranks(); rank++) {
            long bytes = BoundaryMemory.bytes(rank, plan, boundaryBytes, sharedGradientElements);
            for (int stage : plan.training().placement().stagesOf(rank)) {
                bytes += predictedMemory(stage).total();
            }
            planned.add(bytes);
        }
        return planned;
    }

    /** Whether the tokens are text, so that a model can be asked to write some. */
    public boolean readsText() {
        return config.data().format() != DataSection.Format.TOKENS;
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
        options.dump().ifPresent(dump -> GradientDump.merge(dump, model.partition().stages()));
    }

    /** Waits for what goes on behind a published checkpoint. */
    @Override
    public void close() {
        checkpoints.close();
    }

    /**
     * Leaves what a stage's own process needs to build the same assembly in the run's directory.
     */
    void writeForStageProcesses() {
        options.write();
        Path file = options.directory().resolve(LAUNCH_CONFIG);
        try {
            Files.writeString(file, config.resolved());
        } catch (IOException e) {
            throw new UncheckedIOException("cannot write " + file, e);
        }
    }

    /** What this process gives to the ranks that it hosts. */
    RankResources resources(DataPlane dataPlane) {
        return new RankResources(plan, devices(), programs(), dataPlane, checkpoints);
    }

    CheckpointDirectory checkpoints() {
        return checkpoints;
    }

    /** Settings for this run's media driver. */
    DriverSettings driverSettings() {
        return DriverSettings.inSharedMemory(options.runId(), termLengthBytes(), 2 * plan.ranks());
    }

    /** Joins the media driver in this directory. */
    DataPlane openDataPlane(Path driverDirectory) {
        long runId = options.runId().hashCode();
        return AeronDataPlane.start(
                AeronSettings.ipc(driverDirectory, runId)
                        .withTermLength(termLengthBytes())
                        .withMtu(mtuBytes())
                        .withCrc(config.dataPlane().crc())
                        .withPoller(
                                switch (config.dataPlane().poller()) {
                                    case ADAPTIVE -> PollerMode.ADAPTIVE;
                                    case SLEEPING -> PollerMode.SLEEPING;
                                    case SPINNING -> PollerMode.SPINNING;
                                }));
    }

    private int termLengthBytes() {
        return Math.toIntExact(config.dataPlane().termLength().bytes());
    }

    /** Aeron takes frames of at most an eighth of a term. */
    private int mtuBytes() {
        return Math.min(config.dataPlane().mtu(), termLengthBytes() / 8);
    }

    /**
     * Opens ranks' devices; cores are shared among the ranks unless the configuration says
     * otherwise.
     */
    DeviceFactory devices() {
        DeviceSection section = config.device();
        int cores = Runtime.getRuntime().availableProcessors();
        int threads = section.threads().orElse(Math.max(1, cores / plan.ranks()));
        var settings =
                new DeviceSettings(
                        switch (section.kind()) {
                            case AUTO -> DeviceSettings.Kind.AUTO;
                            case CPU -> DeviceSettings.Kind.CPU;
                        },
                        threads,
                        switch (section.gemm()) {
                            case AUTO -> DeviceSettings.Gemm.AUTO;
                            case ONEDNN -> DeviceSettings.Gemm.ONEDNN;
                            case JAVA -> DeviceSettings.Gemm.JAVA;
                        },
                        section.vectorBits().bits(),
                        section.memoryLimit().map(Bytes::bytes).orElse(Long.MAX_VALUE),
                        false);
        return _ -> Devices.open(settings);
    }

    private StageProgramFactory programs() {
        return options.dump()
                .<StageProgramFactory>map(
                        dump ->
                                (stage, device) ->
                                        new GradientDump(stages.create(stage, device), dump))
                .orElse(stages);
    }

    /** Goes on after a part that cannot be, so that its problems are told with the others'. */
    private static <T> Optional<T> attempt(Supplier<T> part, List<Problem> problems) {
        try {
            return Optional.of(part.get());
        } catch (ConfigException e) {
            problems.addAll(e.problems());
            return Optional.empty();
        }
    }

    private TrainingData openData(LoadedConfig loaded) {
        try {
            return TrainingData.open(
                    new DataSpec(
                            config.data().source(),
                            DataFormat.valueOf(config.data().format().name()),
                            config.data().field(),
                            tokenizer,
                            vocabulary(),
                            config.data().validationFraction(),
                            config.model().context(),
                            config.batch().sequences(),
                            config.batch().microBatches(),
                            config.run().steps(),
                            config.run().seed()));
        } catch (DataException e) {
            throw new ConfigException(
                    e.problems().stream()
                            .map(
                                    problem ->
                                            loaded.problem(
                                                    problem.key(),
                                                    problem.expected(),
                                                    problem.got(),
                                                    problem.advice()))
                            .toList());
        }
    }

    private int vocabulary() {
        return config.model().vocabularyOr(tokenizer.vocabulary());
    }

    private GptSettings settings() {
        var section = config.model();
        var shape =
                new GptShape(
                        vocabulary(),
                        section.context(),
                        section.width(),
                        section.layers(),
                        section.heads(),
                        section.tied());
        int stageCount = schedule.training().shape().stages();
        StagePartition partition =
                config.pipeline()
                        .partition()
                        .map(layers -> StagePartition.given(shape, layers))
                        .orElseGet(() -> StagePartition.byFlops(shape, stageCount));
        var batch =
                new BatchShape(
                        config.batch().sequencesPerMicroBatch(),
                        config.batch().microBatches(),
                        schedule.sliceTokens(),
                        config.device().reductionBlock());
        var optimizer = config.optimizer();
        var rate =
                new LearningRate(
                        optimizer.learningRate(),
                        optimizer.finalLearningRate(),
                        optimizer.warmupSteps(),
                        config.run().steps());
        var precision =
                switch (config.device().precision()) {
                    case FLOAT32 -> Precision.FLOAT32;
                    case BF16 -> Precision.BF16;
                };
        return new GptSettings(
                shape,
                partition,
                batch,
                precision,
                new AdamWSettings(
                        rate,
                        optimizer.beta1(),
                        optimizer.beta2(),
                        optimizer.epsilon(),
                        optimizer.weightDecay(),
                        optimizer.decayAll()),
                config.run().seed());
    }

    private Gpt2Config gpt2Config() {
        GptShape shape = model.shape();
        return new Gpt2Config(
                shape.vocabulary(),
                shape.context(),
                shape.width(),
                shape.layers(),
                shape.heads(),
                shape.tied());
    }

    private RunPlan plan(String hash) {
        var timeouts = config.timeouts();
        long completed = start.completedSteps();
        boolean canEvaluate = data.hasHeldOut();
        var steps =
                new RunSteps(
                        completed,
                        options.evaluateOnly() ? completed : config.run().steps(),
                        config.optimizer().clipNorm(),
                        canEvaluate ? evaluateEvery() : 0,
                        config.evaluation().batches(),
                        options.evaluateOnly() ? 0 : checkpointEvery());
        return new RunPlan(
                options.runId(),
                hash,
                schedule.training(),
                schedule.evaluation(),
                inFlight(),
                steps,
                new Timeouts(
                        timeouts.lease(),
                        timeouts.stallReport(),
                        STALL_LIMIT,
                        timeouts.start(),
                        timeouts.stop()));
    }

    private int evaluateEvery() {
        return options.evaluateOnly() ? 1 : config.evaluation().every();
    }

    /** 0 in the configuration means: at the end only. */
    private int checkpointEvery() {
        int every = config.checkpoint().every();
        return every == 0 ? Integer.MAX_VALUE : every;
    }

    private Map<ChannelKey, Integer> inFlight() {
        Map<ChannelKey, Integer> capacities = new HashMap<>();
        for (int stage = 1; stage < schedule.training().shape().stages(); stage++) {
            var forward = new Channel(stage - 1, stage);
            var backward = new Channel(stage, stage - 1);
            capacities.put(
                    new ChannelKey(FrameKind.ACTIVATION, stage - 1, stage),
                    schedule.inFlight().capacity(forward));
            capacities.put(
                    new ChannelKey(FrameKind.GRADIENT, stage, stage - 1),
                    schedule.inFlight().capacity(backward));
        }
        return capacities;
    }

    /** Over all that the processes of a run must agree on. */
    private String hash() {
        try {
            var digest = MessageDigest.getInstance("SHA-256");
            digest.update(config.resolved().getBytes(StandardCharsets.UTF_8));
            for (Schedule each : List.of(schedule.training(), schedule.evaluation())) {
                digest.update(ScheduleText.print(each).getBytes(StandardCharsets.UTF_8));
            }
            return HexFormat.of().formatHex(digest.digest());
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every JDK has SHA-256", e);
        }
    }

    private void requireStepsToGo(LoadedConfig loaded) {
        if (!options.evaluateOnly() && start.completedSteps() > config.run().steps()) {
            throw new ConfigException(
                    List.of(
                            loaded.problem(
                                    "run.steps",
                                    "at least the %d steps of the checkpoint to go on from"
                                            .formatted(start.completedSteps()),
                                    Integer.toString(config.run().steps()),
                                    "raise it, or start a new run without --resume")));
        }
    }

    private void requireMemory(LoadedConfig loaded) {
        long limit = config.device().memoryLimit().map(Bytes::bytes).orElse(Long.MAX_VALUE);
        List<Problem> problems = new ArrayList<>();
        for (int stage = 0; stage < model.partition().stages(); stage++) {
            StageMemory wanted = predictedMemory(stage);
            if (wanted.total() > limit) {
                problems.add(
                        loaded.problem(
                                "device.memory-limit",
                                "at least %,d bytes for stage %d".formatted(wanted.total(), stage),
                                "%,d bytes".formatted(limit),
                                "use more stages, smaller micro-batches or another schedule"));
            }
        }
        if (!problems.isEmpty()) {
            throw new ConfigException(problems);
        }
    }
}
