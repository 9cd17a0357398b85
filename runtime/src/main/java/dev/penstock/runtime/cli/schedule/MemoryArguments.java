package dev.penstock.runtime.cli.schedule;

import dev.penstock.runtime.config.reading.BadInputException;
import dev.penstock.runtime.config.run.RunConfig;
import dev.penstock.runtime.planning.PlannedModel;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.plan.work.ModelShape;
import dev.penstock.schedules.plan.work.OrderMemory;
import dev.penstock.schedules.plan.work.TrainingBytes;
import dev.penstock.schedules.validate.Conditions;
import dev.penstock.schedules.validate.MemoryLimit;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.function.UnaryOperator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** What ranks may hold: so many units, or so many bytes of a model's training. */
final class MemoryArguments {
    private static final Pattern UNITS = Pattern.compile("\\d{1,9}");
    private static final Pattern BYTES =
            Pattern.compile("(\\d{1,9}(?:\\.\\d{1,3})?) ?(B|KiB|MiB|GiB|TiB|KB|MB|GB|TB)");
    private static final List<String> POWERS = List.of("B", "K", "M", "G", "T");

    @Option(
            names = "--memory",
            split = ",",
            paramLabel = "N|BYTES,..",
            description = {
                "Most that a rank may hold at a time: (stage, micro-batch, slice) units, or",
                "bytes of everything such as 8GiB; for all ranks, or one for each."
            })
    private List<String> memory = new ArrayList<>();

    @Option(
            names = "--model",
            paramLabel = "NAME|FILE|KEY=VALUE,..",
            description = {
                "The model whose bytes --memory counts, as in penstock plan, in mixed precision",
                "(default: that of the configuration)."
            })
    private @Nullable String model;

    @Option(
            names = "--batch",
            paramLabel = "N",
            description = "Sequences of a step of each replica (default: one per micro-batch).")
    private @Nullable Integer batch;

    @Option(
            names = "--replicas",
            paramLabel = "N",
            defaultValue = "1",
            description = "Replicas that divide the parameters that are gathered (default: 1).")
    private int replicas = 1;

    private final List<String> problems = new ArrayList<>();

    /** What is wrong with the options, whatever the order. */
    void check(OptionProblems found) {
        found.count("--batch", batch, 1, OptionProblems.MOST);
        found.count("--replicas", replicas, 1, OptionProblems.MOST);
    }

    /**
     * Conditions with the limits that were asked for.
     *
     * @return to be applied to the order as it runs
     * @throws BadInputException with everything that is wrong
     */
    UnaryOperator<Conditions> limits(GivenOrder given, Schedule order) {
        problems.clear();
        UnaryOperator<Conditions> limits = conditions(given, order);
        if (!problems.isEmpty()) {
            throw new BadInputException(String.join("\n", problems));
        }
        return limits;
    }

    private UnaryOperator<Conditions> conditions(GivenOrder given, Schedule order) {
        if (memory.isEmpty()) {
            if (model != null || batch != null) {
                problems.add("expected --memory with --model and --batch; try --memory 8GiB");
            }
            return UnaryOperator.identity();
        }
        if (memory.size() == 1 && UNITS.matcher(memory.getFirst()).matches()) {
            int units = Integer.parseInt(memory.getFirst());
            if (units < 1) {
                problems.add("expected --memory of 1 or more, got " + units);
            }
            return conditions -> conditions.withPeakUnitsLimit(units);
        }
        List<Long> limits = bytesOfRanks(order.shape().ranks());
        Optional<MemoryLimit> limit = limit(given, order, limits);
        return limit.<UnaryOperator<Conditions>>map(l -> c -> c.withMemoryLimit(l))
                .orElse(UnaryOperator.identity());
    }

    private List<Long> bytesOfRanks(int ranks) {
        List<Long> bytes = memory.stream().map(this::bytes).toList();
        if (bytes.size() != 1 && bytes.size() != ranks) {
            problems.add(
                    "--memory: expected one limit or one for each of %d ranks, got %d"
                            .formatted(ranks, bytes.size()));
        }
        return bytes.size() == 1 ? Collections.nCopies(ranks, bytes.getFirst()) : bytes;
    }

    private long bytes(String text) {
        Matcher matcher = BYTES.matcher(text);
        if (!matcher.matches()) {
            problems.add("--memory: expected units such as 4, or bytes such as 8GiB, got " + text);
            return 1;
        }
        String unit = matcher.group(2);
        long bytes =
                (long)
                        (Double.parseDouble(matcher.group(1))
                                * Math.pow(
                                        unit.endsWith("iB") ? 1024 : 1000,
                                        POWERS.indexOf(unit.substring(0, 1))));
        if (bytes < 1) {
            problems.add("expected --memory of 1 byte or more, got " + text);
        }
        return Math.max(1, bytes);
    }

    private Optional<MemoryLimit> limit(GivenOrder given, Schedule order, List<Long> limits) {
        PipelineShape shape = order.shape();
        int sequences = sequences(given.config(), shape.microBatches());
        Optional<ModelShape> trained =
                model == null
                        ? given.config().map(PlannedModel::of)
                        : new PlannedModel(problems).read(model);
        if (model == null && trained.isEmpty()) {
            problems.add(
                    "expected the --model whose bytes are counted; try --model gpt2-124m, or --memory 4 for units");
        }
        trained.filter(m -> m.layers() + 2 < shape.stages())
                .ifPresent(
                        m ->
                                problems.add(
                                        "--model: expected at most %d stages for %d layers, got %d"
                                                .formatted(
                                                        m.layers() + 2,
                                                        m.layers(),
                                                        shape.stages())));
        if (!problems.isEmpty()) {
            return Optional.empty();
        }
        return trained.map(
                m ->
                        OrderMemory.limit(
                                m,
                                trainingBytes(given.config()),
                                order,
                                partition(given.config(), m, shape.stages()),
                                sequences,
                                replicas,
                                limits));
    }

    private int sequences(Optional<RunConfig> config, int microBatches) {
        if (batch == null) {
            return config.map(c -> c.batch().sequencesPerMicroBatch()).orElse(1);
        }
        if (batch % microBatches != 0) {
            problems.add(
                    "--batch: expected a multiple of %d micro-batches, got %d"
                            .formatted(microBatches, batch));
            return 1;
        }
        return batch / microBatches;
    }

    /** A run's are as its devices are; a model that is only named is in mixed precision. */
    private TrainingBytes trainingBytes(Optional<RunConfig> config) {
        return config.filter(_ -> model == null)
                .map(MemoryArguments::bytesOfRun)
                .orElse(TrainingBytes.MIXED);
    }

    private static TrainingBytes bytesOfRun(RunConfig config) {
        TrainingBytes bytes =
                switch (config.device().precision()) {
                    case FLOAT32 -> TrainingBytes.FP32;
                    case BF16, FP16 -> TrainingBytes.BF16_FP32_GRADIENTS;
                };
        int sum =
                switch (config.optimizer().gradientSum()) {
                    case FLOAT32 -> 0;
                    case FIXED_POINT -> Long.BYTES;
                };
        int saved = // but for scales, and moments of tables
                switch (config.optimizer().state()) {
                    case FLOAT32 -> 0;
                    case INT8 -> 2 * (Float.BYTES - Byte.BYTES);
                };
        return new TrainingBytes(
                bytes.parameter(),
                bytes.gradient() + sum,
                bytes.optimizer() - saved,
                bytes.activation());
    }

    private List<Integer> partition(Optional<RunConfig> config, ModelShape trained, int stages) {
        return config.filter(_ -> model == null)
                .flatMap(c -> c.pipeline().partition().layers())
                .orElseGet(() -> trained.evenPartition(stages));
    }
}
