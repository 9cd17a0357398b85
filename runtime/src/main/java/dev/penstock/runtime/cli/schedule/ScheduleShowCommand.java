package dev.penstock.runtime.cli.schedule;

import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import dev.penstock.runtime.cli.command.Terminal;
import dev.penstock.schedules.ir.OpText;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleText;
import dev.penstock.schedules.render.ScheduleGrid;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.InFlight;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import dev.penstock.schedules.simulate.Simulation;
import java.util.List;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** Draws an order. */
@Command(
        name = "show",
        description =
                "Draws an order: a row per rank, 0F2 is the forward of micro-batch 2 on stage 0.",
        footer = {
            "  penstock schedule show sample-configs/quickstart.conf",
            "  penstock schedule show --kind seq1f1b --ranks 2 --micro-batches 4 --slices 2",
            "  penstock schedule show --kind gpipe --view text > my-order.txt",
            "  penstock schedule show --kind breadth-first --gathers per-pass --view order",
        })
final class ScheduleShowCommand extends PenstockCommand {
    /** What is shown of an order. */
    enum View {
        /** Over time, a forward taking 1 and a backward 2. */
        TIME,
        /** Op after op. */
        ORDER,
        /** The text form, to be edited. */
        TEXT
    }

    /** The answer for programs. */
    record Answer(
            String name,
            int ranks,
            int microBatches,
            List<Integer> sliceLengths,
            List<List<String>> programs) {
        static Answer of(Schedule schedule) {
            PipelineShape shape = schedule.shape();
            return new Answer(
                    schedule.name(),
                    shape.ranks(),
                    shape.microBatches(),
                    shape.sliceLengths(),
                    schedule.programs().stream()
                            .map(p -> p.ops().stream().map(op -> OpText.print(op, shape)).toList())
                            .toList());
        }
    }

    @Mixin private OrderArguments order = new OrderArguments();

    @Mixin private LoweringArguments lowering = new LoweringArguments();

    @Option(
            names = "--view",
            defaultValue = "TIME",
            description = "One of ${COMPLETION-CANDIDATES} (default: ${DEFAULT-VALUE}).")
    private View view = View.TIME;

    @Option(names = "--lowered", description = "With the transfers and reductions that a run adds.")
    private boolean lowered;

    @Option(names = "--json", description = "Print one JSON document.")
    private boolean json;

    @Override
    public Integer call() {
        var problems = new OptionProblems();
        order.check(problems);
        lowering.check(problems);
        problems.orThrow();
        GivenOrder given = order.read();
        Schedule schedule = lowered ? lowering.lowered(given) : lowering.applied(given);
        if (json) {
            printJson(Answer.of(schedule));
        } else {
            out().print(drawn(schedule));
            out().flush();
        }
        return ExitCode.OK;
    }

    private String drawn(Schedule schedule) {
        return switch (view) {
            case TIME -> inTime(schedule);
            case ORDER -> ScheduleGrid.order(schedule, Terminal.gridColors());
            case TEXT -> ScheduleText.print(schedule);
        };
    }

    private static String inTime(Schedule schedule) {
        Simulation simulation =
                ScheduleSimulator.run(schedule, CostModel.unit(), InFlight.unbounded());
        return simulation.finished()
                ? ScheduleGrid.time(simulation.timeline(), Terminal.gridColors())
                : ScheduleGrid.order(schedule, Terminal.gridColors())
                        + "This order comes to a standstill; see penstock schedule validate.\n";
    }
}
