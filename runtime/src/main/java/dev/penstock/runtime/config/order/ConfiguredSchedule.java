package dev.penstock.runtime.config.order;

import dev.penstock.actors.spi.RankGrid;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.config.run.FineTuneSection;
import dev.penstock.runtime.config.run.LoadedConfig;
import dev.penstock.runtime.config.run.RunConfig;
import dev.penstock.runtime.config.run.ScheduleSection;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.model.shape.FineTuning;
import dev.penstock.runtime.model.shape.TrainedParts;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.generate.base.BackwardOrder;
import dev.penstock.schedules.generate.base.GenerateOptions;
import dev.penstock.schedules.ir.FrozenStages;
import dev.penstock.schedules.ir.ParsedSchedule;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleFormat;
import dev.penstock.schedules.ir.ScheduleTextException;
import dev.penstock.schedules.ir.TextProblem;
import dev.penstock.schedules.lower.Lowering;
import dev.penstock.schedules.lower.LoweringOptions;
import dev.penstock.schedules.lower.OffloadSettings;
import dev.penstock.schedules.lower.OmitFrozen;
import dev.penstock.schedules.validate.Conditions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/**
 * The order that a configuration asks for, generated or read from its file. Whether it can run is
 * for the judge to say.
 *
 * @param order as generated or written; slice lengths are tokens
 * @param file the order as read, where it comes from a file
 * @param sharedGroups stages that hold the same parameters
 * @param frozen stages of which nothing is trained
 */
public record ConfiguredSchedule(
        Schedule order,
        Optional<ParsedSchedule> file,
        List<List<Integer>> sharedGroups,
        FrozenStages frozen) {

    /**
     * Generates or reads the order.
     *
     * @throws ConfigException if the file is no order, or one of another shape
     */
    public static ConfiguredSchedule of(LoadedConfig loaded) {
        RunConfig config = loaded.config();
        Optional<ParsedSchedule> file = config.schedule().file().map(path -> read(loaded, path));
        Schedule order = file.map(ParsedSchedule::schedule).orElseGet(() -> generated(loaded));
        int stages = order.shape().stages();
        return new ConfiguredSchedule(
                file.isPresent() ? inTokens(order, config.model().context()) : order,
                file,
                sharesTable(config) && stages > 1 ? List.of(List.of(0, stages - 1)) : List.of(),
                frozen(config, stages));
    }

    private static FrozenStages frozen(RunConfig config, int stages) {
        boolean everything =
                config.fineTune().method() == FineTuneSection.Method.FULL
                        && config.fineTune().freeze().isEmpty();
        if (everything) {
            return FrozenStages.NONE;
        }
        ModelConfig model;
        try {
            model = config.model().config(config.data().tokenizer().vocabulary());
        } catch (IllegalArgumentException e) {
            return FrozenStages.NONE; // no model at all: told with all else that is wrong
        }
        FineTuning tuning = config.fineTune().tuning(model.family(), model.shape());
        var parts = new TrainedParts(model.shape(), tuning);
        return parts.frozen(config.partition(parts, stages));
    }

    /** Where the table is frozen, its copies need not be told of each other's gradients. */
    private static boolean sharesTable(RunConfig config) {
        boolean trained =
                config.fineTune().method() == FineTuneSection.Method.FULL
                        && config.fineTune().freeze().stream()
                                .noneMatch(pattern -> FineTuning.matches(pattern, "wte.weight"));
        return config.model().sharesTable() && trained;
    }

    /** The computations of a training step: the order without what nothing trained needs. */
    public Schedule computations() {
        return OmitFrozen.from(order, frozen);
    }

    /**
     * What a training step runs, for the number of tensors that the configuration lets under way.
     */
    public Schedule training(LoadedConfig loaded) {
        return Lowering.lower(order, lowering(loaded));
    }

    /** The forwards of {@link #training} alone. */
    public Schedule evaluation(LoadedConfig loaded) {
        return Lowering.lowerForwardOnly(order, lowering(loaded));
    }

    private LoweringOptions lowering(LoadedConfig loaded) {
        var whole = LoweringOptions.plain().withSharedGroups(sharedGroups).withFrozen(frozen);
        int visit = order.shape().microBatches() * order.shape().slices();
        var shared = loaded.config().zero().lowering(whole, holders(loaded), visit);
        var options =
                loaded.config().schedule().recompute().units() ? shared.withRecompute() : shared;
        ScheduleSection section = loaded.config().schedule();
        Set<Integer> offloaded = section.offload().stages(order.shape().stages());
        if (!offloaded.isEmpty()) {
            options = options.withOffload(new OffloadSettings(offloaded, section.reloadAhead()));
        }
        return loaded.config().dataPlane().inFlight().map(options::withCapacity).orElse(options);
    }

    /**
     * The most micro-batches that stages may hold whatever the wiring of a generated order; empty
     * where the order says it.
     */
    public Optional<List<Integer>> caps(LoadedConfig loaded) {
        ScheduleSection section = loaded.config().schedule();
        return section.isWiredKind()
                ? Optional.of(WiredOrders.caps(section, order.shape()))
                : Optional.empty();
    }

    /** What the judge is told of a training step. */
    public Conditions conditions(LoadedConfig loaded) {
        Conditions training = Conditions.training().withFrozen(frozen);
        boolean sums = holders(loaded) > 1 || loaded.config().device().swap().isPresent();
        return sums ? training.withReplicas() : training;
    }

    /** How many ranks hold the same parameters. */
    private static int holders(LoadedConfig loaded) {
        RankGrid grid = loaded.config().grid();
        return grid.data() * grid.context();
    }

    private static Schedule generated(LoadedConfig loaded) {
        RunConfig config = loaded.config();
        ScheduleSection section = config.schedule();
        BackwardOrder backward =
                switch (section.backward()) {
                    case FIFO -> BackwardOrder.FIFO;
                    case REVERSE -> BackwardOrder.REVERSE;
                };
        String kind = section.kind().word();
        try {
            boolean wired = section.isWiredKind();
            PipelineShape shape =
                    new PipelineShape(
                            config.pipeline().stages(),
                            config.chunks(),
                            wired ? config.batch().microBatches() : config.microBatchesOfReplica(),
                            section.tokensPerSlice(config.model(), config.parallel().context()));
            if (wired) {
                if (config.parallel().data() > 1) {
                    requireNone(WiredOrders.problems(loaded));
                }
                return WiredOrders.generate(config, shape);
            }
            var options = GenerateOptions.defaults().withBackwardOrder(backward);
            return Generators.generate(
                    kind,
                    shape,
                    section.costs().isEmpty()
                            ? options
                            : options.withCosts(section.costsOfRanks()));
        } catch (IllegalArgumentException e) {
            throw new ConfigException(
                    List.of(
                            loaded.problem(
                                    "schedule.kind",
                                    "a kind that runs in this shape",
                                    kind + " (" + e.getMessage() + ")",
                                    "try another kind or shape")));
        }
    }

    private static ParsedSchedule read(LoadedConfig loaded, Path file) {
        ParsedSchedule parsed = parse(loaded, file);
        requireShape(loaded, parsed.schedule().shape());
        return parsed;
    }

    /** The order in a file, whatever its shape. */
    static ParsedSchedule parse(LoadedConfig loaded, Path file) {
        try {
            return ScheduleFormat.ofFile(file.toString()).read(Files.readString(file));
        } catch (IOException e) {
            throw new ConfigException(
                    List.of(
                            loaded.problem(
                                    "schedule.file",
                                    "a readable text file",
                                    file + " (" + e.getMessage() + ")",
                                    "check the path")));
        } catch (ScheduleTextException e) {
            throw new ConfigException(
                    OrderProblems.of(e).stream()
                            .map(problem -> inFile(loaded, file, problem))
                            .toList());
        }
    }

    private static Problem inFile(LoadedConfig loaded, Path file, TextProblem problem) {
        return new Problem(
                loaded.nameOf(file),
                problem.position().line(),
                "",
                "an order of work",
                "column %d: %s".formatted(problem.position().column(), problem.message()),
                "compare sample-configs/orders/hand-written.txt");
    }

    private static void requireShape(LoadedConfig loaded, PipelineShape shape) {
        RunConfig config = loaded.config();
        int context = config.model().context();
        List<Problem> problems = new ArrayList<>();
        boolean wired = shape.peers() > 1;
        if (wired) {
            problems.addAll(WiredOrders.problems(loaded));
        }
        if (wired && shape.peers() != config.parallel().data()) {
            problems.add(
                    misfit(loaded, "parallel.data = ", config.parallel().data(), shape.peers()));
        }
        if (shape.pipelineRanks() != config.pipeline().stages()) {
            problems.add(
                    misfit(
                            loaded,
                            "pipeline.stages = ",
                            config.pipeline().stages(),
                            shape.pipelineRanks()));
        }
        int wanted = wired ? config.batch().microBatches() : config.microBatchesOfReplica();
        if (shape.microBatches() != wanted) {
            String what =
                    wired || config.parallel().data() == 1
                            ? "batch.micro-batches = "
                            : "batch.micro-batches / parallel.data = ";
            problems.add(misfit(loaded, what, wanted, shape.microBatches()));
        }
        if (shape.chunks() != config.chunks()) {
            problems.add(misfit(loaded, "pipeline.chunks = ", config.chunks(), shape.chunks()));
        }
        if (context % total(shape) != 0) {
            problems.add(
                    loaded.problem(
                            "schedule.file",
                            "slice lengths whose sum divides model.context = " + context,
                            shape.sliceLengths() + ": sum " + total(shape),
                            "write the lengths in tokens"));
        } else {
            requirePartsOfSlices(loaded, shape, problems);
        }
        requireNone(problems);
    }

    private static void requireNone(List<Problem> problems) {
        if (!problems.isEmpty()) {
            throw new ConfigException(problems);
        }
    }

    private static void requirePartsOfSlices(
            LoadedConfig loaded, PipelineShape shape, List<Problem> problems) {
        int parts = loaded.config().parallel().context();
        int tokens = loaded.config().model().context() / total(shape);
        List<Integer> lengths = shape.sliceLengths().stream().map(l -> l * tokens).toList();
        if (lengths.stream().anyMatch(length -> length % parts != 0)) {
            problems.add(
                    loaded.problem(
                            "schedule.file",
                            "slices of multiples of parallel.context = " + parts + " tokens",
                            lengths.toString(),
                            "change the lengths, or parallel.context"));
        }
        int shards = loaded.config().parallel().tensor();
        List<Integer> rows = loaded.config().rowsOfUnits(lengths);
        if (loaded.config().parallel().sequence()
                && rows.stream().anyMatch(count -> count % shards != 0)) {
            problems.add(
                    loaded.problem(
                            "schedule.file",
                            RunConfig.ROWS_OF_SHARDS + shards,
                            rows.toString(),
                            "change the lengths, or parallel.sequence"));
        }
    }

    private static Problem misfit(LoadedConfig loaded, String what, int wanted, int got) {
        return loaded.problem(
                "schedule.file",
                "an order for " + what + wanted,
                "one for " + got,
                "change one of both");
    }

    /** Lengths in a file may be proportions, such as {@code 1 1} for two halves. */
    private static Schedule inTokens(Schedule order, int context) {
        PipelineShape shape = order.shape();
        int tokens = context / total(shape);
        return new Schedule(
                order.name(),
                new PipelineShape(
                        shape.ranks(),
                        shape.chunks(),
                        shape.microBatches(),
                        shape.sliceLengths().stream().map(length -> length * tokens).toList(),
                        shape.peers()),
                order.placement(),
                order.programs(),
                order.sharedGroups());
    }

    private static int total(PipelineShape shape) {
        return shape.sliceLengths().stream().mapToInt(Integer::intValue).sum();
    }
}
