package dev.penstock.runtime.planning;

import dev.penstock.runtime.config.order.ConfiguredSchedule;
import dev.penstock.runtime.config.reading.BadInputException;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.config.run.LoadedConfig;
import dev.penstock.runtime.metrics.RunDirectory;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;
import dev.penstock.schedules.plan.slices.ContextTerm;
import dev.penstock.schedules.plan.slices.MeasuredSliceCost;
import dev.penstock.schedules.plan.slices.SliceSample;
import dev.penstock.schedules.simulate.ProfileCosts;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.TreeSet;

/**
 * The slice costs measured by runs: every run gives t(l, c) of each of its slices, on its slowest
 * stage. Runs with other numbers of slices give other lengths; costs between them are interpolated
 * linearly.
 */
public final class MeasuredSlices {
    /** The conditions that have to be the same in all runs. */
    private record Measured(
            int stages,
            int tokens,
            int sequencesPerMicroBatch,
            int tensorShards,
            int contextParts) {}

    private static final String TRY =
            "; train a few steps with schedule.slices = 1, 2, 3 and 4 and give all four runs";

    private final List<SliceSample> samples = new ArrayList<>();
    private final List<String> problems = new ArrayList<>();
    private final Set<String> conditions = new TreeSet<>();
    private int tokens;

    private MeasuredSlices() {}

    /**
     * Fits the times of slices to what the runs measured.
     *
     * @throws BadInputException if the runs do not match each other or do not determine the costs
     */
    public static SliceTimes of(List<Path> runs, PipelineShape shape) {
        var slices = new MeasuredSlices();
        runs.forEach(run -> slices.add(run, shape));
        if (slices.conditions.size() > 1) {
            slices.problems.add(
                    "--profile: expected runs of the same shape, got " + slices.conditions);
        }
        if (!slices.problems.isEmpty()) {
            throw new BadInputException(String.join("\n", slices.problems));
        }
        try {
            return slices.times();
        } catch (IllegalArgumentException e) {
            throw new BadInputException("--profile: " + e.getMessage() + TRY);
        }
    }

    private void add(Path run, PipelineShape asked) {
        var directory = new RunDirectory(run);
        try {
            LoadedConfig loaded =
                    ConfigLoader.loadOfRun(directory.resolvedConfiguration(), List.of());
            Schedule order = ConfiguredSchedule.of(loaded).computations();
            ProfileCosts costs = ProfileFile.read(run);
            List<String> missing = costs.missing(order);
            if (!missing.isEmpty()) {
                problems.add(run + " did not measure " + String.join("; ", missing));
                return;
            }
            if (order.shape().stages() != asked.stages()) {
                problems.add(
                        "%s: expected a run of %d stages, like the order to be generated, got %d"
                                .formatted(run, asked.stages(), order.shape().stages()));
            }
            var measured =
                    new Measured(
                            order.shape().stages(),
                            loaded.config().model().context(),
                            loaded.config().batch().sequencesPerMicroBatch(),
                            loaded.config().parallel().tensor(),
                            loaded.config().parallel().context());
            conditions.add(measured.toString());
            tokens = measured.tokens();
            addSamples(order, costs);
        } catch (ConfigException e) {
            e.problems().forEach(problem -> problems.add(problem.toString()));
        } catch (BadInputException e) {
            problems.add(String.valueOf(e.getMessage()));
        }
    }

    private void addSamples(Schedule order, ProfileCosts costs) {
        int context = 0;
        List<Integer> lengths = order.shape().sliceLengths();
        for (int slice = 0; slice < lengths.size(); slice++) {
            long slowest = 0;
            for (int stage = 0; stage < order.shape().stages(); stage++) {
                var unit = new WorkUnit(stage, 0, slice);
                slowest =
                        Math.max(
                                slowest,
                                costs.nanos(0, 0, new Op.Forward(unit))
                                        + costs.nanos(0, 0, new Op.Backward(unit)));
            }
            samples.add(new SliceSample(lengths.get(slice), context, slowest));
            context += lengths.get(slice);
        }
    }

    private SliceTimes times() {
        if (samples.stream().allMatch(sample -> sample.context() == 0)) {
            throw new IllegalArgumentException("expected runs with slices, got whole sequences");
        }
        MeasuredSliceCost cost = MeasuredSliceCost.of(samples);
        ContextTerm.FitError error = cost.contextTerm().error();
        return new SliceTimes(
                cost,
                tokens,
                String.format(
                        Locale.ROOT,
                        "context term fitted to %d measured slices: error %.1f %% on average,"
                                + " %.1f %% at worst",
                        error.samples(),
                        100 * error.mean(),
                        100 * error.worst()));
    }
}
