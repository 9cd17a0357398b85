package dev.penstock.runtime.cli;

import dev.penstock.runtime.config.ClusterConfig;
import dev.penstock.runtime.config.ClusterLoader;
import dev.penstock.runtime.config.ConfigException;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.plan.HardwareCosts;
import dev.penstock.schedules.plan.HardwareSliceCost;
import dev.penstock.schedules.plan.Layout;
import dev.penstock.schedules.plan.ModelShape;
import dev.penstock.schedules.plan.PlanChoice;
import dev.penstock.schedules.plan.PlanRequest;
import dev.penstock.schedules.plan.ZeroStage;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Costs of an order on a cluster: one device per rank, one sequence per micro-batch, the model's
 * blocks divided evenly among the stages.
 */
final class HardwareModel {
    private HardwareModel() {}

    /**
     * @throws BadInputException with everything that is wrong
     */
    static HardwareCosts of(Path clusterFile, String modelText, Schedule schedule) {
        List<String> problems = new ArrayList<>();
        PipelineShape shape = schedule.shape();
        Optional<ClusterConfig> cluster = cluster(clusterFile, shape, problems);
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

    /**
     * The model alone.
     *
     * @param tokens of a sequence; null for the model's
     */
    static ModelShape shape(String modelText, @Nullable Integer tokens) {
        List<String> problems = new ArrayList<>();
        Optional<ModelShape> model = new PlannedModel(problems).read(modelText);
        if (tokens != null && tokens < 1) {
            problems.add("--tokens: expected 1 or more, got " + tokens);
        }
        requireNone(problems);
        return tokens == null ? model.orElseThrow() : model.orElseThrow().withSequence(tokens);
    }

    /** What slices of one sequence cost on the slowest device. */
    static SliceTimes sliceTimes(Path clusterFile, ModelShape model, PipelineShape shape) {
        return sliceTimes(clusterFile, model, shape, 1);
    }

    /** What slices of so many sequences cost on the slowest device. */
    static SliceTimes sliceTimes(
            Path clusterFile, ModelShape model, PipelineShape shape, int sequences) {
        List<String> problems = new ArrayList<>();
        Optional<ClusterConfig> cluster = cluster(clusterFile, shape, problems);
        requireNone(problems);
        return new SliceTimes(
                HardwareSliceCost.of(
                        request(cluster.orElseThrow(), model, shape),
                        new Layout(shape.ranks(), 1, 1),
                        model.evenPartition(shape.stages()),
                        sequences),
                model.sequence(),
                "times follow from the hardware's rates: nothing was fitted");
    }

    private static Optional<ClusterConfig> cluster(
            Path file, PipelineShape shape, List<String> problems) {
        try {
            ClusterConfig cluster = ClusterLoader.load(file);
            int devices = cluster.cluster().devices();
            if (devices < shape.ranks()) {
                problems.add(
                        "--hardware: expected at least %d devices, one per rank, got %d"
                                .formatted(shape.ranks(), devices));
            }
            return Optional.of(cluster);
        } catch (ConfigException e) {
            e.problems().forEach(problem -> problems.add(problem.toString()));
            return Optional.empty();
        }
    }

    private static PlanRequest request(
            ClusterConfig cluster, ModelShape model, PipelineShape shape) {
        return new PlanRequest(
                model, cluster.trainingBytes(), cluster.cluster(), shape.microBatches());
    }

    private static void requireNone(List<String> problems) {
        if (!problems.isEmpty()) {
            throw new BadInputException(String.join("\n", problems));
        }
    }
}
