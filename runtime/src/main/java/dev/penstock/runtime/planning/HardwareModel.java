package dev.penstock.runtime.planning;

import dev.penstock.actors.dataplane.ChannelCodecs;
import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.FrameKind;
import dev.penstock.actors.dataplane.emulated.EmulatedLinks;
import dev.penstock.actors.spi.RankGrid;
import dev.penstock.runtime.config.hardware.HardwareConfig;
import dev.penstock.runtime.config.hardware.HardwareLoader;
import dev.penstock.runtime.config.reading.BadInputException;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.run.RunConfig;
import dev.penstock.runtime.model.shape.OuterSettings;
import dev.penstock.schedules.ir.Channel;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.plan.slices.HardwareSliceCost;
import dev.penstock.schedules.plan.work.HardwareCosts;
import dev.penstock.schedules.plan.work.Layout;
import dev.penstock.schedules.plan.work.ModelShape;
import dev.penstock.schedules.plan.work.OuterExchange;
import dev.penstock.schedules.plan.work.PlanChoice;
import dev.penstock.schedules.plan.work.PlanRequest;
import dev.penstock.schedules.plan.work.ZeroStage;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The costs of an order on a cluster: one device per rank, one sequence per micro-batch, the
 * model's blocks divided evenly among the stages.
 */
public final class HardwareModel {
    private HardwareModel() {}

    /**
     * Computes what the ops of a schedule cost on a cluster.
     *
     * @throws BadInputException with all problems
     */
    public static HardwareCosts of(Path clusterFile, String modelText, Schedule schedule) {
        List<String> problems = new ArrayList<>();
        PipelineShape shape = schedule.shape();
        Optional<HardwareConfig> cluster = cluster(clusterFile, shape.ranks(), problems);
        Optional<ModelShape> model = new PlannedModel(problems).read(modelText);
        requireNone(problems);
        ModelShape trained = model.orElseThrow();
        PlanRequest request = request(cluster.orElseThrow(), trained, shape);
        var choice =
                new PlanChoice(
                        new Layout(shape.ranks(), 1, 1),
                        ZeroStage.NONE,
                        schedule.name(),
                        shape.chunks(),
                        shape.microBatches(),
                        trained.tokens(shape.sliceLengths()),
                        false);
        return HardwareCosts.of(
                request, choice, trained.evenPartition(shape.stages()), schedule.placement());
    }

    /** A configuration's run on a cluster. */
    private record Planned(PlanRequest request, PlanChoice choice, List<Integer> partition) {}

    /**
     * Returns the costs of a configuration's order as its run executes it: with its shards, its
     * replicas, what these divide and when they gather and sum it, its batch, its partition into
     * stages and the blocks that it recomputes.
     *
     * @param modelText a model other than the configuration's
     * @throws BadInputException with all problems
     */
    public static HardwareCosts of(
            Path clusterFile, Optional<String> modelText, Schedule schedule, RunConfig run) {
        Planned planned = planned(clusterFile, modelText, schedule, run);
        Layout layout = planned.choice().layout();
        HardwareCosts resident =
                HardwareCosts.ofRun(
                        planned.request(),
                        planned.choice(),
                        planned.partition(),
                        schedule,
                        run.schedule().recompute().blocks(planned.request().model().layers()),
                        run.parallel().sequence() ? layout.tensor() : 1);
        HardwareCosts swapped =
                run.device().swap().isPresent() ? resident.swapped(planned.partition()) : resident;
        HardwareCosts summed = run.parallel().outer().isPresent() ? swapped.apart() : swapped;
        HardwareCosts costs = run.pairsAtOnce() ? summed : summed.oneOpAtATime();
        ChannelCodecs codecs = run.codecs();
        int width = planned.request().model().width();
        return costs.coded(channel -> bytesOfToken(codecs, channel, width));
    }

    /**
     * Returns how long replicas that take steps alone exchange a fragment: entry [f][r] is that of
     * fragment f on rank r.
     *
     * @throws BadInputException with all problems
     */
    public static long[][] exchanges(
            Path clusterFile,
            Optional<String> modelText,
            Schedule schedule,
            RunConfig run,
            OuterSettings outer) {
        Planned planned = planned(clusterFile, modelText, schedule, run);
        double words = outer.codec().map(codec -> codec.words(OuterSettings.ROW)).orElse(0);
        double bytesEach = words == 0 ? Float.BYTES : Float.BYTES * words / OuterSettings.ROW;
        return new OuterExchange(outer.fragments(), bytesEach, words > 0)
                .nanos(
                        planned.request(),
                        planned.choice(),
                        planned.partition(),
                        schedule.placement());
    }

    private static Planned planned(
            Path clusterFile, Optional<String> modelText, Schedule schedule, RunConfig run) {
        List<String> problems = new ArrayList<>();
        PipelineShape shape = schedule.shape();
        var layout = layout(run.grid(), shape, run.grid().data());
        Optional<HardwareConfig> cluster = cluster(clusterFile, layout.devices(), problems);
        if (run.grid().context() > 1) {
            problems.add(
                    "--hardware does not support context parallelism: expected parallel.context = 1, got %d; try --profile with a run of this configuration"
                            .formatted(run.grid().context()));
        }
        if (run.parallel().mesh().isThere()) {
            problems.add(
                    "--hardware does not support meshes of tensor shards: expected parallel.tensor-mesh = [], got %s; try --profile with a run of this configuration"
                            .formatted(run.parallel().tensorMesh()));
        }
        Optional<ModelShape> model =
                modelText.isPresent()
                        ? new PlannedModel(problems).read(modelText.get())
                        : Optional.of(PlannedModel.of(run));
        requireNone(problems);
        ModelShape trained = model.orElseThrow();
        HardwareConfig devices = cluster.orElseThrow();
        EmulatedLinks links = run.dataPlane().emulated();
        var choice =
                new PlanChoice(
                        layout,
                        zero(run),
                        schedule.name(),
                        shape.chunks(),
                        shape.microBatches(),
                        trained.tokens(shape.sliceLengths()),
                        run.schedule().recompute().units());
        List<Integer> partition =
                run.pipeline()
                        .partition()
                        .layers()
                        .filter(_ -> modelText.isEmpty())
                        .orElse(trained.evenPartition(shape.stages()));
        var request =
                new PlanRequest(
                        trained,
                        devices.trainingBytes(),
                        EmulatedHardware.of(devices.cluster(), links),
                        run.batch().sequences());
        return new Planned(request, choice, partition);
    }

    /** Returns the layout of an order that so many replicas run on a grid. */
    static Layout layout(RankGrid grid, PipelineShape shape, int data) {
        return new Layout(
                shape.ranks(),
                grid.tensor(),
                data,
                grid.pipeline() == shape.ranks() ? grid.shards() : List.of());
    }

    static long bytesOfToken(ChannelCodecs codecs, Channel channel, int width) {
        boolean forward = channel.toStage() > channel.fromStage();
        var key =
                new ChannelKey(
                        forward ? FrameKind.ACTIVATION : FrameKind.GRADIENT,
                        channel.fromStage(),
                        channel.toStage());
        return codecs.of(key).isPresent() ? codecs.bytes(key, 1, width) : 0;
    }

    /** Returns what replicas divide; a single one divides nothing. */
    private static ZeroStage zero(RunConfig run) {
        return Stream.of(ZeroStage.values())
                .filter(_ -> run.grid().data() > 1)
                .filter(stage -> stage.number() == run.parallel().zeroStage())
                .findFirst()
                .orElse(ZeroStage.NONE);
    }

    /**
     * Returns the model alone.
     *
     * @param tokens of a sequence; null for the model's
     */
    public static ModelShape shape(String modelText, @Nullable Integer tokens) {
        List<String> problems = new ArrayList<>();
        Optional<ModelShape> model = new PlannedModel(problems).read(modelText);
        if (tokens != null && tokens < 1) {
            problems.add("--tokens: expected 1 or more, got " + tokens);
        }
        requireNone(problems);
        return tokens == null ? model.orElseThrow() : model.orElseThrow().withSequence(tokens);
    }

    /** Returns the cost of slices of one sequence on the slowest device. */
    public static SliceTimes sliceTimes(Path clusterFile, ModelShape model, PipelineShape shape) {
        return sliceTimes(clusterFile, model, shape, 1);
    }

    /** Returns the cost of slices of that many sequences on the slowest device. */
    public static SliceTimes sliceTimes(
            Path clusterFile, ModelShape model, PipelineShape shape, int sequences) {
        List<String> problems = new ArrayList<>();
        Optional<HardwareConfig> cluster = cluster(clusterFile, shape.ranks(), problems);
        requireNone(problems);
        return new SliceTimes(
                HardwareSliceCost.of(
                        request(cluster.orElseThrow(), model, shape),
                        new Layout(shape.ranks(), 1, 1),
                        model.evenPartition(shape.stages()),
                        sequences),
                model.sequence(),
                "times follow from the hardware's rates; nothing was fitted");
    }

    private static Optional<HardwareConfig> cluster(Path file, int ranks, List<String> problems) {
        try {
            HardwareConfig cluster = HardwareLoader.load(file);
            int devices = cluster.cluster().devices();
            if (devices < ranks) {
                problems.add(
                        "--hardware: expected at least %d devices, one per rank, got %d"
                                .formatted(ranks, devices));
            }
            return Optional.of(cluster);
        } catch (ConfigException e) {
            e.problems().forEach(problem -> problems.add(problem.toString()));
            return Optional.empty();
        }
    }

    private static PlanRequest request(
            HardwareConfig cluster, ModelShape model, PipelineShape shape) {
        return new PlanRequest(
                model, cluster.trainingBytes(), cluster.cluster(), shape.microBatches());
    }

    private static void requireNone(List<String> problems) {
        if (!problems.isEmpty()) {
            throw new BadInputException(String.join("\n", problems));
        }
    }
}
