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
import dev.penstock.schedules.simulate.CostModel;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;

/**
 * Costs of an order on a cluster: one device per rank, one sequence per micro-batch, the model's
 * blocks divided evenly among the stages.
 */
final class HardwareModel {
    private HardwareModel() {}

    /**
     * @throws BadInputException with everything that is wrong
     */
    static CostModel of(Path clusterFile, String modelText, Schedule schedule) {
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
                        tokens(shape.sliceLengths(), trained.sequence()),
                        false);
        return HardwareCosts.of(
                request, choice, even(trained.layers(), shape.stages()), schedule.placement());
    }

    /** Lengths that are proportions, such as 1 and 1, as tokens of the whole sequence. */
    private static List<Integer> tokens(List<Integer> lengths, int sequence) {
        long sum = lengths.stream().mapToLong(Integer::longValue).sum();
        var tokens = new ArrayList<Integer>();
        long before = 0;
        for (int length : lengths) {
            long after = before + length;
            tokens.add((int) (after * sequence / sum - before * sequence / sum));
            before = after;
        }
        return tokens;
    }

    private static List<Integer> even(int blocks, int stages) {
        return IntStream.range(0, stages)
                .mapToObj(stage -> blocks / stages + (stage < blocks % stages ? 1 : 0))
                .toList();
    }
}
