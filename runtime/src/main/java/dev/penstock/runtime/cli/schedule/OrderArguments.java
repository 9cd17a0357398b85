package dev.penstock.runtime.cli.schedule;

import dev.penstock.runtime.config.order.ConfiguredSchedule;
import dev.penstock.runtime.config.reading.BadInputException;
import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.config.run.LoadedConfig;
import dev.penstock.schedules.ir.FrozenStages;
import dev.penstock.schedules.ir.ParsedSchedule;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleFormat;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** Which order is meant: that of a configuration, of a file, or of a kind and a shape. */
final class OrderArguments {
    /** Completes and lists the kinds of schedule. */
    static final class Kinds extends ArrayList<String> {
        private static final long serialVersionUID = 1L;

        Kinds() {
            super(ShapeArguments.kinds());
        }
    }

    @Parameters(
            index = "0",
            arity = "0..1",
            paramLabel = "CONFIG|ORDER",
            description =
                    "A configuration (*.conf), or a file with an order; - for the standard input.")
    private @Nullable Path input;

    @Option(
            names = "--format",
            completionCandidates = OrderFormats.class,
            converter = OrderFormats.Converter.class,
            description = {
                "How the file is written: ${COMPLETION-CANDIDATES}",
                "(default: torch-csv for *.csv, else text)."
            })
    private @Nullable ScheduleFormat format;

    @Option(
            names = "--kind",
            completionCandidates = Kinds.class,
            description = "A generated order instead: one of ${COMPLETION-CANDIDATES}.")
    private @Nullable String kind;

    @Mixin private ShapeArguments shape = new ShapeArguments();

    @Option(
            names = "--set",
            paramLabel = "KEY=VALUE",
            description = "Overrides a key of the configuration; may be repeated.")
    private List<String> overrides = new ArrayList<>();

    @Spec(Spec.Target.MIXEE)
    private @Nullable CommandSpec command;

    /** What is wrong with the options of a generated order, or that they are of no use. */
    void check(OptionProblems problems) {
        if (kind != null) {
            shape.check(problems);
            unused(problems, "--kind " + kind, List.of("--set"), "a configuration");
        } else if (input != null) {
            unused(problems, input.toString(), ShapeArguments.options(), "--kind");
            if (!isConfig(input)) {
                unused(problems, input.toString(), List.of("--set"), "a configuration");
            }
        }
    }

    /** What would be ignored is a mistake. */
    private void unused(OptionProblems problems, String source, List<String> names, String of) {
        List<String> given =
                Objects.requireNonNull(command)
                        .commandLine()
                        .getParseResult()
                        .matchedOptions()
                        .stream()
                        .map(OptionSpec::longestName)
                        .filter(names::contains)
                        .distinct()
                        .toList();
        if (!given.isEmpty()) {
            problems.add(
                    "%s: expected beside %s only, got %s; leave it out"
                            .formatted(String.join(", ", given), of, source));
        }
    }

    private boolean isConfig(Path file) {
        return format == null && file.toString().endsWith(".conf");
    }

    /** Checks the options and reads or generates the order, if that is possible with them. */
    Optional<GivenOrder> read(OptionProblems problems) {
        int before = problems.size();
        check(problems);
        return problems.size() == before ? problems.read(this::read) : Optional.empty();
    }

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
            return GivenOrder.of(shape.generate(String.valueOf(kind)));
        }
        return isConfig(input) ? readConfig(input) : readOrder(input);
    }

    /** How the user calls it: by its file, or by the kind that was generated. */
    String nameOf(Schedule read) {
        return input == null ? read.name() : input.toString();
    }

    private GivenOrder readConfig(Path file) {
        LoadedConfig loaded = ConfigLoader.loadWithOrigins(file, overrides);
        ConfiguredSchedule configured = ConfiguredSchedule.of(loaded);
        return new GivenOrder(
                configured.order(),
                configured.file(),
                configured.sharedGroups(),
                configured.frozen(),
                Optional.of(loaded));
    }

    private GivenOrder readOrder(Path file) {
        ParsedSchedule parsed = OrderFile.read(file, format);
        return new GivenOrder(
                parsed.schedule(),
                Optional.of(parsed),
                List.of(),
                FrozenStages.NONE,
                Optional.empty());
    }
}
