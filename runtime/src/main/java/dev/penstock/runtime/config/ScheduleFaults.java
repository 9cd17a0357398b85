package dev.penstock.runtime.config;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.OpText;
import dev.penstock.schedules.ir.ParsedSchedule;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.InFlight;
import dev.penstock.schedules.validate.Conditions;
import dev.penstock.schedules.validate.ScheduleValidator;
import dev.penstock.schedules.validate.Violation;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;

/** What the judge objects to in a configured order, as problems of the configuration. */
public final class ScheduleFaults {
    private static final int SHOWN = 20;

    private ScheduleFaults() {}

    /**
     * Judges the order as it was written and, if that is in order, as it would run: with its
     * transfers, the configured number of tensors in flight, and the forwards alone.
     *
     * @return at most {@value #SHOWN} problems, at their lines where the order comes from a file;
     *     empty if it can run
     */
    public static List<Problem> of(LoadedConfig loaded, ConfiguredSchedule configured) {
        Schedule order = configured.order();
        List<Problem> asWritten = asWritten(loaded, order, configured.file());
        if (!asWritten.isEmpty()) {
            return asWritten;
        }
        List<Problem> beyond = beyondStages(loaded, order);
        if (!beyond.isEmpty()) {
            return beyond;
        }
        Schedule training = configured.training(loaded);
        Schedule evaluation = configured.evaluation(loaded);
        InFlight inFlight =
                loaded.config()
                        .dataPlane()
                        .inFlight()
                        .map(InFlight::uniform)
                        .orElseGet(() -> InFlight.auto(training).max(InFlight.auto(evaluation)));
        List<Violation> asRun =
                ScheduleValidator.validate(
                                training, ConfiguredSchedule.conditions(loaded).with(inFlight))
                        .violations();
        List<Violation> asEvaluated =
                ScheduleValidator.validate(evaluation, Conditions.forwardOnly().with(inFlight))
                        .violations();
        return problems(asRun.isEmpty() ? asEvaluated : asRun, v -> atKey(loaded, v));
    }

    /**
     * What can be said of the file with the order whatever the rest of the configuration is: its
     * text, and the order as it was written.
     *
     * @return as of {@link #of}; empty if the order is not from a file
     */
    public static List<Problem> ofFile(LoadedConfig loaded) {
        Optional<Path> file = loaded.config().schedule().file();
        if (file.isEmpty()) {
            return List.of();
        }
        try {
            ParsedSchedule parsed = ConfiguredSchedule.parse(loaded, file.get());
            return asWritten(loaded, parsed.schedule(), Optional.of(parsed));
        } catch (ConfigException e) {
            return e.problems();
        }
    }

    private static List<Problem> asWritten(
            LoadedConfig loaded, Schedule order, Optional<ParsedSchedule> file) {
        return problems(
                ScheduleValidator.validate(order).violations(),
                violation ->
                        file.map(parsed -> atLine(loaded, parsed, violation))
                                .orElseGet(() -> atKey(loaded, violation)));
    }

    /** Stages hold whole parameters; orders that say otherwise do not run. */
    private static List<Problem> beyondStages(LoadedConfig loaded, Schedule order) {
        return order.programs().stream()
                .flatMap(program -> program.ops().stream())
                .filter(op -> op instanceof Op.ParameterOp)
                .map(op -> OpText.print(op, order.shape()))
                .distinct()
                .limit(SHOWN)
                .map(
                        op ->
                                loaded.problem(
                                        "schedule.file",
                                        "ops that stages can run: they hold their parameters and do not gather",
                                        op,
                                        "leave it out, or simulate the order with penstock schedule simulate"))
                .toList();
    }

    private static List<Problem> problems(
            List<Violation> violations, Function<Violation, Problem> problem) {
        return violations.stream().limit(SHOWN).map(problem).toList();
    }

    private static Problem atLine(LoadedConfig loaded, ParsedSchedule parsed, Violation violation) {
        Problem atKey = atKey(loaded, violation);
        return new Problem(
                loaded.config().schedule().file().map(loaded::nameOf).orElse(atKey.place()),
                parsed.positionOf(violation.place()).line(),
                "",
                atKey.expected(),
                atKey.got(),
                atKey.advice());
    }

    private static Problem atKey(LoadedConfig loaded, Violation violation) {
        boolean fromFile = loaded.config().schedule().file().isPresent();
        return loaded.problem(
                fromFile ? "schedule.file" : "schedule.kind",
                "an order that can run",
                violation.message(),
                "see it with penstock schedule validate");
    }
}
