package dev.penstock.runtime.config;

import dev.penstock.schedules.ir.OpPlace;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.lower.Lowering;
import dev.penstock.schedules.simulate.InFlight;
import dev.penstock.schedules.validate.Conditions;
import dev.penstock.schedules.validate.ScheduleValidator;
import dev.penstock.schedules.validate.Violation;
import java.util.List;
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
        List<Violation> asWritten = ScheduleValidator.validate(order).violations();
        if (!asWritten.isEmpty()) {
            return problems(asWritten, at(loaded, configured));
        }
        Schedule training = Lowering.lower(order, configured.sharedGroups());
        Schedule evaluation = Lowering.lowerForwardOnly(order);
        InFlight inFlight =
                loaded.config()
                        .dataPlane()
                        .inFlight()
                        .map(InFlight::uniform)
                        .orElseGet(() -> InFlight.auto(training).max(InFlight.auto(evaluation)));
        List<Violation> asRun =
                ScheduleValidator.validate(training, Conditions.training().with(inFlight))
                        .violations();
        List<Violation> asEvaluated =
                ScheduleValidator.validate(evaluation, Conditions.forwardOnly().with(inFlight))
                        .violations();
        return problems(asRun.isEmpty() ? asEvaluated : asRun, v -> atKey(loaded, v));
    }

    private static List<Problem> problems(
            List<Violation> violations, Function<Violation, Problem> problem) {
        return violations.stream().limit(SHOWN).map(problem).toList();
    }

    private static Function<Violation, Problem> at(
            LoadedConfig loaded, ConfiguredSchedule configured) {
        return violation ->
                configured
                        .file()
                        .map(
                                file -> {
                                    OpPlace place = violation.place();
                                    Problem atKey = atKey(loaded, violation);
                                    return new Problem(
                                            loaded.config()
                                                    .schedule()
                                                    .file()
                                                    .map(loaded::nameOf)
                                                    .orElse(atKey.place()),
                                            file.positionOf(place).line(),
                                            "",
                                            atKey.expected(),
                                            atKey.got(),
                                            atKey.advice());
                                })
                        .orElseGet(() -> atKey(loaded, violation));
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
