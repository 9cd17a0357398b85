package dev.penstock.runtime.cli;

import dev.penstock.runtime.config.ConfigLoader;
import dev.penstock.runtime.config.ConfiguredSchedule;
import dev.penstock.schedules.generate.BackwardOrder;
import dev.penstock.schedules.generate.GenerateOptions;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.ir.ParsedSchedule;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleText;
import dev.penstock.schedules.ir.ScheduleTextException;
import dev.penstock.schedules.ir.TextProblem;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Which order is meant: that of a configuration, of a file, or of a kind and a shape. */
final class OrderArguments {
    /** Completes and lists the kinds of schedule. */
    static final class Kinds extends ArrayList<String> {
        private static final long serialVersionUID = 1L;

        Kinds() {
            super(Generators.kinds());
        }
    }

    @Parameters(
            index = "0",
            arity = "0..1",
            paramLabel = "CONFIG|ORDER",
            description = "A configuration (*.conf), or a file with an order in text form.")
    private @Nullable Path input;

    @Option(
            names = "--kind",
            completionCandidates = Kinds.class,
            description = "A generated order instead: one of ${COMPLETION-CANDIDATES}.")
    private @Nullable String kind;

    @Option(
            names = "--ranks",
            defaultValue = "4",
            description = "Ranks of a generated order (default: ${DEFAULT-VALUE}).")
    private int ranks;

    @Option(
            names = "--micro-batches",
            defaultValue = "8",
            description = "Micro-batches of a generated order (default: ${DEFAULT-VALUE}).")
    private int microBatches;

    @Option(
            names = "--slices",
            split = ",",
            paramLabel = "S|L1,L2,..",
            defaultValue = "1",
            description =
                    "Token slices of a sequence: their number, or their lengths (default:"
                            + " ${DEFAULT-VALUE}).")
    private List<Integer> slices = List.of(1);

    @Option(
            names = "--backward",
            defaultValue = "FIFO",
            description = "Order of gpipe's backward passes: fifo or reverse.")
    private BackwardOrder backward = BackwardOrder.FIFO;

    @Option(
            names = "--set",
            paramLabel = "KEY=VALUE",
            description = "Overrides a key of the configuration; may be repeated.")
    private List<String> overrides = new ArrayList<>();

    /**
     * Reads or generates the order.
     *
     * @throws BadInputException or ConfigException with everything that is wrong
     */
    GivenOrder read() {
        if ((input == null) == (kind == null)) {
            throw new BadInputException(
                    "expected a configuration, an order file or --kind, got "
                            + (input == null ? "none of them" : "a file and --kind")
                            + "; try penstock schedule show --kind 1f1b");
        }
        if (input == null) {
            return new GivenOrder(generate(String.valueOf(kind)), Optional.empty(), List.of());
        }
        return input.toString().endsWith(".conf") ? readConfig(input) : readOrder(input);
    }

    private Schedule generate(String name) {
        try {
            return Generators.generate(
                    name, shape(), GenerateOptions.defaults().withBackwardOrder(backward));
        } catch (IllegalArgumentException e) {
            throw new BadInputException(String.valueOf(e.getMessage()));
        }
    }

    private PipelineShape shape() {
        List<Integer> lengths =
                slices.size() == 1
                        ? Collections.nCopies(Math.max(1, slices.getFirst()), 1)
                        : slices;
        if (slices.size() == 1 && slices.getFirst() < 1) {
            throw new BadInputException("expected 1 or more --slices, got " + slices.getFirst());
        }
        return new PipelineShape(ranks, 1, microBatches, lengths);
    }

    private GivenOrder readConfig(Path file) {
        ConfiguredSchedule configured =
                ConfiguredSchedule.of(ConfigLoader.loadWithOrigins(file, overrides));
        return new GivenOrder(configured.order(), configured.file(), configured.sharedGroups());
    }

    private static GivenOrder readOrder(Path file) {
        try {
            ParsedSchedule parsed = ScheduleText.read(Files.readString(file));
            return new GivenOrder(parsed.schedule(), Optional.of(parsed), List.of());
        } catch (IOException e) {
            throw new BadInputException(
                    "expected a readable text file, got %s (%s); check the path"
                            .formatted(file, e.getClass().getSimpleName()));
        } catch (ScheduleTextException e) {
            throw new BadInputException(
                    e.problems().stream()
                            .map(problem -> described(file, problem))
                            .collect(
                                    Collectors.joining("\n", file + " is no order of work\n", "")));
        }
    }

    private static String described(Path file, TextProblem problem) {
        return "  %s:%d:%d: %s"
                .formatted(
                        file,
                        problem.position().line(),
                        problem.position().column(),
                        problem.message());
    }
}
