package dev.penstock.runtime.cli.schedule;

import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import dev.penstock.schedules.ir.OpText;
import dev.penstock.schedules.ir.ParsedSchedule;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.TextPosition;
import dev.penstock.schedules.lower.LoweringOptions;
import dev.penstock.schedules.render.FaultGrid;
import dev.penstock.schedules.simulate.InFlight;
import dev.penstock.schedules.simulate.MemoryProfile;
import dev.penstock.schedules.validate.Conditions;
import dev.penstock.schedules.validate.ScheduleValidator;
import dev.penstock.schedules.validate.ValidationReport;
import dev.penstock.schedules.validate.Violation;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** Proves an order, or says everything that is wrong with it. */
@Command(
        name = "validate",
        description = {
            "Proves that an order is complete, respects every dependency and cannot hang.",
            "All violations are named at once; exit code 2 if there are any."
        },
        footer = {
            "  penstock schedule validate sample-configs/orders/hand-written.txt",
            "  penstock schedule validate my-order.csv --buffers 1 --memory 4",
            "  penstock schedule validate my-order.csv --gathers per-pass --reduce per-step",
            "  penstock schedule validate --kind gpipe --memory 8GiB \\",
            "    --model gpt2-355m --batch 32",
        })
final class ScheduleValidateCommand extends PenstockCommand {
    /**
     * A violation for programs; bytes that are wanted and their limit where it is about these, line
     * and column where the order was read from a file.
     */
    record Finding(
            String kind,
            int rank,
            int position,
            String op,
            String message,
            @Nullable Long bytes,
            @Nullable Long limitBytes,
            @Nullable Integer line,
            @Nullable Integer column) {}

    /** The answer for programs. */
    record Answer(boolean valid, List<Finding> violations, List<Integer> peakActivations) {}

    @Mixin private OrderArguments order = new OrderArguments();

    @Mixin private LoweringArguments lowering = new LoweringArguments();

    @Option(
            names = "--buffers",
            paramLabel = "N",
            description =
                    "Tensors that may be under way between two stages (default: as many as the"
                            + " order needs).")
    private @Nullable Integer buffers;

    @Mixin private MemoryArguments memory = new MemoryArguments();

    @Option(names = "--json", description = "Print one JSON document.")
    private boolean json;

    @Override
    public Integer call() {
        var problems = new OptionProblems();
        order.check(problems);
        lowering.check(problems);
        problems.count("--buffers", buffers, 1, OptionProblems.MOST);
        memory.check(problems);
        problems.orThrow();
        GivenOrder given = order.read();
        boolean changes = !lowering.options().equals(LoweringOptions.plain());
        // what it holds is judged when it is as it will run
        ValidationReport report =
                changes
                        ? ScheduleValidator.validate(given.order(), asGiven())
                        : judge(given, given.order(), asGiven());
        Optional<ParsedSchedule> positions = given.file();
        if (report.isValid() && (changes || !given.order().hasTransfers())) {
            Schedule lowered = lowering.lowered(given, buffers);
            ValidationReport asRun =
                    judge(
                            given,
                            lowered,
                            Conditions.training()
                                    .withFrozen(given.frozen())
                                    .with(inFlight(lowered)));
            if (changes || !asRun.isValid()) {
                report = asRun;
                positions = Optional.empty();
            }
        }
        if (json) {
            printJson(answer(report, positions));
        } else if (report.isValid()) {
            printProof(report);
        } else {
            printViolations(order.nameOf(given.order()), report, positions);
        }
        return report.isValid() ? ExitCode.OK : ExitCode.BAD_INPUT;
    }

    private ValidationReport judge(GivenOrder given, Schedule order, Conditions conditions) {
        return ScheduleValidator.validate(order, memory.limits(given, order).apply(conditions));
    }

    /** An order that has its transfers already must do with the buffers that are given. */
    private Conditions asGiven() {
        Conditions conditions = Conditions.training();
        return buffers == null ? conditions : conditions.with(InFlight.uniform(buffers));
    }

    private InFlight inFlight(Schedule lowered) {
        return buffers == null ? InFlight.auto(lowered) : InFlight.uniform(buffers);
    }

    private void printProof(ValidationReport report) {
        out().println(report.describe() + ": complete, in order, and cannot hang");
        for (MemoryProfile.RankPeak peak : report.memory().ranks()) {
            out().printf(
                            "rank %d holds at most %d units of activations at a time%n",
                            peak.rank(), peak.peakUnits());
        }
        out().flush();
    }

    private void printViolations(
            String name, ValidationReport report, Optional<ParsedSchedule> positions) {
        int count = report.violations().size();
        err().println(
                        "penstock: %s is invalid: %d %s"
                                .formatted(name, count, count == 1 ? "error" : "errors"));
        for (Violation violation : report.violations()) {
            String where =
                    positions
                            .map(file -> file.positionOf(violation.place()))
                            .map(at -> "line %d, column %d: ".formatted(at.line(), at.column()))
                            .orElse("");
            err().println("  " + where + violation.message());
        }
        err().print(FaultGrid.of(report));
        err().flush();
    }

    private static Answer answer(ValidationReport report, Optional<ParsedSchedule> positions) {
        return new Answer(
                report.isValid(),
                report.violations().stream()
                        .map(violation -> finding(report.schedule(), violation, positions))
                        .toList(),
                report.memory().ranks().stream().map(MemoryProfile.RankPeak::peakUnits).toList());
    }

    private static Finding finding(
            Schedule schedule, Violation violation, Optional<ParsedSchedule> positions) {
        Optional<TextPosition> at = positions.map(file -> file.positionOf(violation.place()));
        Long bytes = null;
        Long limit = null;
        if (violation instanceof Violation.MemoryExceeded exceeded) {
            bytes = exceeded.peakBytes();
            limit = exceeded.limitBytes();
        }
        return new Finding(
                violation.getClass().getSimpleName(),
                violation.place().rank(),
                violation.place().position(),
                OpText.print(violation.place().op(), schedule.shape()),
                violation.message(),
                bytes,
                limit,
                at.map(TextPosition::line).orElse(null),
                at.map(TextPosition::column).orElse(null));
    }
}
