package dev.penstock.runtime.cli.schedule;

import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import dev.penstock.runtime.cli.command.Terminal;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.render.ChromeTrace;
import dev.penstock.schedules.render.GridColors;
import dev.penstock.schedules.render.ScheduleGrid;
import dev.penstock.schedules.render.ScheduleSvg;
import dev.penstock.schedules.render.TimelinePanel;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import dev.penstock.schedules.simulate.Timeline;
import dev.penstock.schedules.validate.Conditions;
import dev.penstock.schedules.validate.ScheduleValidator;
import java.util.List;
import java.util.Optional;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** Draws a simulated order as a picture. */
@Command(
        name = "draw",
        description =
                "Draws an order over time: as a picture, or for Perfetto and chrome://tracing.",
        footer = {
            "  penstock schedule draw --kind zb-h1 --ranks 4 --output zb-h1.svg",
            "  penstock schedule draw my-order.csv --as trace --output my-order.json",
            "  penstock schedule draw --kind 1f1b --split-backward --recompute full -o r.svg",
            "  penstock schedule draw --kind wired-1f1b --ranks 2 --peers 4 \\",
            "    --micro-batches 16 --without 5 --as grid",
        })
final class ScheduleDrawCommand extends PenstockCommand {
    /** What is drawn. */
    enum Picture {
        /** A Gantt chart with the bubble and the memory of each rank. */
        SVG,
        /** Trace events. */
        TRACE,
        /** Text, a row per rank. */
        GRID
    }

    @Mixin private OrderArguments order = new OrderArguments();

    @Mixin private LoweringArguments lowering = new LoweringArguments();

    @Mixin private CostArguments costs = new CostArguments();

    @Option(
            names = "--as",
            defaultValue = "SVG",
            description = "One of ${COMPLETION-CANDIDATES} (default: ${DEFAULT-VALUE}).")
    private Picture picture = Picture.SVG;

    @Mixin private WrittenText written = new WrittenText();

    @Override
    public Integer call() {
        var problems = new OptionProblems();
        Optional<GivenOrder> read = order.read(problems);
        lowering.check(problems);
        costs.check(read, problems);
        problems.orThrow();
        GivenOrder given = read.orElseThrow();
        Schedule schedule = lowering.applied(given);
        ScheduleValidator.validate(schedule, Conditions.training().withFrozen(given.frozen()))
                .orThrow();
        Timeline timeline = ScheduleSimulator.simulate(schedule, costs.model(schedule));
        TimelinePanel panel =
                costs.measured()
                        ? TimelinePanel.nanos(schedule.name(), timeline)
                        : TimelinePanel.units(schedule.name(), timeline);
        String text =
                switch (picture) {
                    case SVG -> ScheduleSvg.draw(panel);
                    case TRACE -> ChromeTrace.json(List.of(panel));
                    case GRID -> ScheduleGrid.time(timeline, gridColors());
                };
        written.write(text, out());
        return ExitCode.OK;
    }

    /** A file is plain text, whoever waits for it. */
    private GridColors gridColors() {
        return written.output().isEmpty() ? Terminal.gridColors() : GridColors.NONE;
    }
}
