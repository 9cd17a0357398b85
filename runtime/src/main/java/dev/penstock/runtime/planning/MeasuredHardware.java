package dev.penstock.runtime.planning;

import dev.penstock.runtime.config.order.ConfiguredSchedule;
import dev.penstock.runtime.config.reading.BadInputException;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.config.run.LoadedConfig;
import dev.penstock.runtime.config.run.RunConfig;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.plan.work.DeviceSpec;
import dev.penstock.schedules.plan.work.Hardware;
import dev.penstock.schedules.plan.work.HardwareCosts;
import dev.penstock.schedules.plan.work.ModelShape;
import dev.penstock.schedules.plan.work.NodeGroup;
import dev.penstock.schedules.plan.work.PlanChoice;
import dev.penstock.schedules.plan.work.PlanRequest;
import dev.penstock.schedules.plan.work.TrainingBytes;
import dev.penstock.schedules.plan.work.ZeroStage;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.ProfileCosts;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;

/**
 * A cluster whose devices are as fast as measured by runs: rates of computing and of memory are
 * those of its file, times the ratio of the time that the file's rates predict for a run's
 * computations to the time that they took.
 */
public final class MeasuredHardware {
    private final TrainingBytes bytes;
    private final List<String> problems;
    private final List<String> notes = new ArrayList<>();

    /**
     * @param bytes per number
     * @param problems receives what is wrong
     */
    public MeasuredHardware(TrainingBytes bytes, List<String> problems) {
        this.bytes = bytes;
        this.problems = problems;
    }

    /** Returns a line for people for each group of nodes that was measured. */
    public List<String> notes() {
        return notes;
    }

    /**
     * Replaces what a cluster can do by what runs on it measured.
     *
     * @param profiles {@code RUN_DIR} for all nodes, {@code NODE=RUN_DIR} for one group of them
     * @return the cluster as given, where there is a problem
     */
    public Hardware of(Hardware cluster, List<String> profiles) {
        Map<String, Path> runs = new TreeMap<>();
        List<String> names = cluster.groups().stream().map(NodeGroup::name).toList();
        for (String profile : profiles) {
            int equals = profile.indexOf('=');
            String name = profile.substring(0, Math.max(0, equals));
            Path run = Path.of(profile.substring(equals + 1));
            if (equals < 0) {
                names.forEach(each -> runs.put(each, run));
            } else if (names.contains(name)) {
                runs.put(name, run);
            } else {
                problems.add(
                        "--profile: expected RUN_DIR, or NODE=RUN_DIR with one of %s, got %s"
                                .formatted(String.join(", ", names), profile));
            }
        }
        List<NodeGroup> groups =
                cluster.groups().stream()
                        .map(
                                group ->
                                        runs.containsKey(group.name())
                                                ? measured(group, runs.get(group.name()))
                                                : group)
                        .toList();
        return new Hardware(cluster.name(), groups, cluster.network());
    }

    private NodeGroup measured(NodeGroup group, Path run) {
        double speed;
        try {
            speed = speed(group, run);
        } catch (ConfigException e) {
            e.problems().forEach(problem -> problems.add("--profile: " + problem));
            return group;
        } catch (BadInputException e) {
            problems.add("--profile: " + e.getMessage());
            return group;
        }
        notes.add(
                String.format(
                        Locale.ROOT,
                        "%s: %.3gx the cluster file's rates (measured in %s)",
                        group.name(),
                        speed,
                        run));
        DeviceSpec device = group.device();
        return new NodeGroup(
                group.name(),
                group.nodes(),
                group.devicesPerNode(),
                new DeviceSpec(
                        device.memoryBytes(),
                        device.peakFlops() * speed,
                        device.achieved(),
                        device.bytesPerSecond() * speed,
                        device.hostBytesPerSecond(),
                        device.diskBytesPerSecond()),
                group.inside());
    }

    /**
     * Returns the ratio of the time that the group's rates predict for a step's computations to the
     * time that they took.
     */
    private double speed(NodeGroup group, Path run) {
        ProfileCosts took = ProfileFile.read(run).computing();
        LoadedConfig loaded = ConfigLoader.loadOfRun(run.resolve("resolved.conf"), List.of());
        RunConfig config = loaded.config();
        Schedule order = ConfiguredSchedule.of(loaded).computations();
        if (config.grid().context() > 1) {
            throw new BadInputException(
                    "%s: plans do not support context parallelism: expected a run with parallel.context = 1, got %d"
                            .formatted(run, config.grid().context()));
        }
        List<String> missing = took.missing(order);
        if (!missing.isEmpty()) {
            throw new BadInputException(
                    "%s: the profile has no times of %s, which the run's order computes"
                            .formatted(run, String.join("; ", missing)));
        }
        return sum(order, foretold(group, config, order)) / sum(order, took);
    }

    private HardwareCosts foretold(NodeGroup group, RunConfig config, Schedule order) {
        PipelineShape shape = order.shape();
        ModelShape model = PlannedModel.of(config);
        var layout = HardwareModel.layout(config.grid(), shape, 1);
        var machines =
                new NodeGroup(group.name(), layout.devices(), 1, group.device(), group.inside());
        var choice =
                new PlanChoice(
                        layout,
                        ZeroStage.NONE,
                        order.name(),
                        shape.chunks(),
                        shape.microBatches(),
                        model.tokens(shape.sliceLengths()),
                        false); // recompute of its own ops only
        return HardwareCosts.ofRun(
                new PlanRequest(
                        model,
                        bytes,
                        new Hardware(group.name(), List.of(machines), group.inside()),
                        config.batch().sequences() / config.grid().data()),
                choice,
                config.pipeline().partition().layers().orElse(model.evenPartition(shape.stages())),
                order,
                config.schedule().recompute().blocks(model.layers()),
                1);
    }

    private static double sum(Schedule order, CostModel costs) {
        double sum = 0;
        for (int rank = 0; rank < order.programs().size(); rank++) {
            RankProgram program = order.programs().get(rank);
            for (int position = 0; position < program.ops().size(); position++) {
                sum += costs.nanos(rank, position, program.ops().get(position));
            }
        }
        return sum;
    }
}
