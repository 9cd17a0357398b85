package dev.penstock.runtime.config.order;

import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.config.run.LoadedConfig;
import dev.penstock.runtime.config.run.ParallelSection;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.OpText;
import dev.penstock.schedules.ir.ParsedSchedule;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.InFlight;
import dev.penstock.schedules.validate.Conditions;
import dev.penstock.schedules.validate.ScheduleValidator;
import dev.penstock.schedules.validate.Violation;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Stream;

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
        List<Problem> against = againstZero(loaded, order);
        if (!against.isEmpty()) {
            return against;
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
                ScheduleValidator.validate(training, configured.conditions(loaded).with(inFlight))
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

    /** What an order says of parameters and gradients is what the run does with them. */
    private static List<Problem> againstZero(LoadedConfig loaded, Schedule order) {
        ParallelSection parallel = loaded.config().parallel();
        List<Problem> problems = new ArrayList<>();
        firstGather(order)
                .ifPresent(
                        op -> {
                            if (parallel.zeroStage() < 3) {
                                problems.add(
                                        loaded.problem(
                                                "schedule.file",
                                                "an order that leaves parameters where they are,"
                                                        + " unless parallel.zero.stage = 3",
                                                "%s, and parallel.zero.stage = %d"
                                                        .formatted(op, parallel.zeroStage()),
                                                "shard the parameters, or leave UNSHARD and RESHARD"
                                                        + " out"));
                            } else if (parallel.zeroResidency()
                                    == ParallelSection.Residency.LAYER) {
                                problems.add(
                                        loaded.problem(
                                                "parallel.zero.residency",
                                                "micro-batch, pass or step where schedule.file"
                                                        + " gathers by itself ("
                                                        + op
                                                        + ")",
                                                "layer",
                                                "leave it out, or leave UNSHARD and RESHARD out of"
                                                        + " the order"));
                            }
                        });
        if (parallel.zeroStage() < 2 && parallel.data() * parallel.context() > 1) {
            stageOfManySums(order)
                    .ifPresent(
                            stage ->
                                    problems.add(
                                            loaded.problem(
                                                    "schedule.file",
                                                    "one sum of a stage's gradients, unless"
                                                            + " parallel.zero.stage = 2 or 3",
                                                    "%dREDUCE_GRAD again, and parallel.zero.stage = %d"
                                                            .formatted(stage, parallel.zeroStage()),
                                                    "divide gradients, or keep the last one"
                                                            + " alone")));
        }
        return problems;
    }

    private static Optional<String> firstGather(Schedule order) {
        return ops(order)
                .filter(op -> op instanceof Op.ParameterOp)
                .map(op -> OpText.print(op, order.shape()))
                .findFirst();
    }

    /** Of a wired order, every replica of a stage has one. */
    private static OptionalInt stageOfManySums(Schedule order) {
        return order.programs().stream()
                .flatMapToInt(program -> stageOfManySums(program).stream())
                .findFirst();
    }

    private static OptionalInt stageOfManySums(RankProgram program) {
        Set<Integer> seen = new HashSet<>();
        return program.ops().stream()
                .filter(op -> op instanceof Op.ReduceGradients)
                .mapToInt(Op::stage)
                .filter(stage -> !seen.add(stage))
                .findFirst();
    }

    private static Stream<Op> ops(Schedule order) {
        return order.programs().stream().flatMap(program -> program.ops().stream());
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
