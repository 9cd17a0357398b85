package dev.penstock.runtime.cli;

import dev.penstock.runtime.config.ClusterConfig;
import dev.penstock.runtime.config.ClusterLoader;
import dev.penstock.runtime.config.ConfigException;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.plan.HardwareCosts;
import dev.penstock.schedules.plan.Layout;
import dev.penstock.schedules.plan.ModelShape;
import dev.penstock.schedules.plan.PlanChoice;
import dev.penstock.schedules.plan.PlanRequest;
import dev.penstock.schedules.plan.ZeroStage;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

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
        Optional<ClusterConfig> cluster = Optional.empty();
        try {
            cluster = Optional.of(ClusterLoader.load(clusterFile));
        } catch (ConfigException e) {
            e.problems().forEach(problem -> problems.add(problem.toString()));
        }
        Optional<ModelShape> model = new PlannedModel(problems).read(modelText);
        PipelineShape shape = schedule.shape();
        cluster.filter(c -> c.cluster().devices() < shape.ranks())
                .ifPresent(
                        c ->
                                problems.add(
                                        "--hardware: expected at least %d devices, one per rank, got %d"
                                                .formatted(shape.ranks(), c.cluster().devices())));
        if (!problems.isEmpty()) {
            throw new BadInputException(String.join("\n", problems));
        }
        ModelShape trained = model.orElseThrow();
        var request =
                new PlanRequest(
                        trained,
                        cluster.orElseThrow().trainingBytes(),
                        cluster.orElseThrow().cluster(),
                        shape.microBatches());
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
}
