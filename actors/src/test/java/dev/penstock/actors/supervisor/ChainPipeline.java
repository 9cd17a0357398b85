package dev.penstock.actors.supervisor;

import akka.actor.typed.ActorSystem;
import akka.actor.typed.Behavior;
import akka.actor.typed.javadsl.Behaviors;
import com.typesafe.config.ConfigFactory;
import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.DataPlane;
import dev.penstock.actors.dataplane.FrameKind;
import dev.penstock.actors.dataplane.aeron.AeronDataPlane;
import dev.penstock.actors.dataplane.aeron.AeronSettings;
import dev.penstock.actors.dataplane.aeron.DriverSettings;
import dev.penstock.actors.dataplane.aeron.EmbeddedDriver;
import dev.penstock.actors.node.NodeActor;
import dev.penstock.actors.node.TestNodes;
import dev.penstock.actors.rank.RankResources;
import dev.penstock.actors.spi.CheckpointStore;
import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.RunSteps;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.actors.spi.Timeouts;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.ir.Channel;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.lower.Lowering;
import dev.penstock.schedules.simulate.InFlight;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.LongConsumer;
import java.util.function.UnaryOperator;

/**
 * A real pipeline of {@link ChainStage}s in this process: actors, Aeron, the interpreter. What a
 * test wants different, it sets.
 */
final class ChainPipeline implements RunListener, CheckpointStore {
    private static final Duration DEADLINE = Duration.ofSeconds(60);

    final ChainStage.Settings settings;
    final List<StepReport> steps = Collections.synchronizedList(new ArrayList<>());
    final List<String> stalls = Collections.synchronizedList(new ArrayList<>());
    final Map<Long, Double> evaluations = Collections.synchronizedMap(new HashMap<>());
    final List<Long> published = Collections.synchronizedList(new ArrayList<>());
    final List<Long> abandoned = Collections.synchronizedList(new ArrayList<>());
    final List<String> failedCheckpoints = Collections.synchronizedList(new ArrayList<>());

    /** Builds the stages. */
    ChainStages programs;

    /** What stands between the ranks and the real data plane. */
    UnaryOperator<DataPlane> dataPlane = UnaryOperator.identity();

    /** What the node built of the same configuration. */
    UnaryOperator<RunPlan> planOfTheNode = UnaryOperator.identity();

    RunSteps runSteps = new RunSteps(0, 5, 0, 0, 0, 0);
    Timeouts timeouts = Timeouts.DEFAULT;

    /** Whether every rank's state is kept by the next one as well. */
    boolean mirrors;

    /** Told the supervisor once it runs. */
    Consumer<ActorSystem<PipelineSupervisor.Command>> onStart = _ -> {};

    /** Hears of each step before it counts as heard, on the listener's thread. */
    Consumer<StepReport> listener = _ -> {};

    /** Told the step of each shard before it is written. */
    LongConsumer onSave = _ -> {};

    /** Counted down when the supervisor's actor system has ended. */
    final CountDownLatch stopped = new CountDownLatch(1);

    private final Schedule compute;

    ChainPipeline(String kind, ChainStage.Settings settings) {
        this(
                Generators.generate(
                        kind,
                        PipelineShape.of(
                                settings.stages(), settings.microBatches(), settings.slices())),
                settings);
    }

    /**
     * @param compute of as many stages, micro-batches and slices as the settings say
     */
    ChainPipeline(Schedule compute, ChainStage.Settings settings) {
        this.settings = settings;
        this.compute = compute;
        this.programs = (stage, _, device) -> new ChainStage(settings, stage, device);
    }

    RunPlan plan() {
        List<List<Integer>> shared =
                settings.tied() && settings.stages() > 1
                        ? List.of(List.of(0, settings.stages() - 1))
                        : List.of();
        Schedule training = Lowering.lower(compute, shared);
        Schedule evaluation = Lowering.lowerForwardOnly(compute);
        InFlight inFlight = InFlight.auto(training).max(InFlight.auto(evaluation));
        Map<ChannelKey, Integer> capacities = new HashMap<>();
        for (int s = 1; s < settings.stages(); s++) {
            capacities.put(
                    new ChannelKey(FrameKind.ACTIVATION, s - 1, s),
                    inFlight.capacity(new Channel(s - 1, s)));
            capacities.put(
                    new ChannelKey(FrameKind.GRADIENT, s, s - 1),
                    inFlight.capacity(new Channel(s, s - 1)));
        }
        return new RunPlan(
                "chain", "hash", training, evaluation, capacities, runSteps, timeouts, mirrors);
    }

    List<Double> losses() {
        return steps.stream().map(StepReport::loss).toList();
    }

    RunOutcome run() throws Exception {
        RunPlan plan = plan();
        var outcome = new CompletableFuture<RunOutcome>();
        int term = 1024 * 1024;
        var driverSettings = DriverSettings.inSharedMemory("chain-test", term, 2 * plan.ranks());
        try (var driver = EmbeddedDriver.start(driverSettings);
                DataPlane plane =
                        dataPlane.apply(
                                AeronDataPlane.start(
                                        AeronSettings.ipc(driver.directory(), 42)
                                                .withTermLength(term)))) {
            var resources =
                    RankResources.of(
                            planOfTheNode.apply(plan),
                            _ ->
                                    Devices.open(
                                            DeviceSettings.DEFAULTS.withKind(
                                                    DeviceSettings.Kind.REFERENCE)),
                            programs,
                            plane,
                            this);
            Behavior<PipelineSupervisor.Command> guardian =
                    Behaviors.setup(
                            context -> {
                                context.spawn(
                                        NodeActor.create(TestNodes.ofAny("test", 1), resources),
                                        "node");
                                return PipelineSupervisor.create(plan, this, this, outcome);
                            });
            ActorSystem<PipelineSupervisor.Command> system =
                    ActorSystem.create(
                            guardian,
                            "chain",
                            ConfigFactory.parseString(
                                            "akka { stdout-loglevel = OFF, loglevel = WARNING,"
                                                    + " log-dead-letters = off }")
                                    .withFallback(ConfigFactory.load()));
            var _ = system.getWhenTerminated().toCompletableFuture().thenRun(stopped::countDown);
            onStart.accept(system);
            try {
                return outcome.get(DEADLINE.toSeconds(), TimeUnit.SECONDS);
            } finally {
                system.terminate();
                system.getWhenTerminated()
                        .toCompletableFuture()
                        .get(DEADLINE.toSeconds(), TimeUnit.SECONDS);
            }
        }
    }

    @Override
    public void onStep(StepReport report) {
        listener.accept(report);
        steps.add(report);
    }

    @Override
    public void onEvaluation(long step, double loss, OptionalDouble accuracy) {
        evaluations.put(step, loss);
    }

    @Override
    public void onCheckpoint(long step, long bytes, long nanos) {
        published.add(step);
    }

    @Override
    public void onCheckpointFailed(long step, String reason) {
        failedCheckpoints.add(step + ": " + reason);
    }

    @Override
    public void onStall(String report) {
        stalls.add(report);
    }

    @Override
    public ShardFile writeShard(
            long step, int epoch, int stage, RankPlace place, List<NamedTensor> state) {
        onSave.accept(step);
        return new ShardFile(stage, "stage-" + stage, state.getFirst().tensor().bytes(), "00");
    }

    @Override
    public void publish(long step, int epoch, List<ShardFile> shards) {
        if (shards.size() != settings.stages()) {
            throw new IllegalStateException("expected a shard of each stage, got " + shards);
        }
    }

    @Override
    public void abandon(long step, int epoch) {
        abandoned.add(step);
    }
}
