package dev.penstock.runtime.cli;

import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.BubbleReport;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.MemoryProfile;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import dev.penstock.schedules.validate.ScheduleValidator;
import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** Times an order under given costs. */
@Command(
        name = "simulate",
        description = "Times an order: makespan, bubble, and what each rank does and holds.",
        footer = {
            "  penstock schedule simulate sample-configs/quickstart.conf",
            "  penstock schedule simulate my-order.csv --costs forward=10,backward=21",
            "  penstock schedule simulate --kind zb-h1 --ranks 4 --micro-batches 8",
        })
final class ScheduleSimulateCommand extends PenstockCommand {
    /** The answer for programs, in the units of the costs; of a profile: nanoseconds. */
    record Answer(String name, long makespan, double bubble, List<RankAnswer> ranks) {}

    /**
     * @param idle all time without computation
     * @param idleInSpan the part of it between the rank's first and last computation
     * @param peakActivations most live (stage, micro-batch, slice) units
     */
    record RankAnswer(int rank, long busy, long idle, long idleInSpan, int peakActivations) {}

    @Mixin private OrderArguments order = new OrderArguments();

    @Mixin private LoweringArguments lowering = new LoweringArguments();

    @Mixin private CostArguments costs = new CostArguments();

    @Option(names = "--json", description = "Print one JSON document.")
    private boolean json;

    @Override
    public Integer call() {
        Schedule schedule = lowering.applied(order.read());
        ScheduleValidator.validate(schedule).orThrow();
        CostModel costModel = costs.model(schedule);
        BubbleReport bubble = ScheduleSimulator.simulate(schedule, costModel).bubble();
        Answer answer = answer(schedule, bubble);
        if (json) {
            printJson(answer);
        } else {
            print(answer);
        }
        return ExitCode.OK;
    }

    private static Answer answer(Schedule schedule, BubbleReport bubble) {
        MemoryProfile memory = MemoryProfile.of(schedule, PassKind.TRAINING);
        List<RankAnswer> ranks = new ArrayList<>();
        for (BubbleReport.RankTime time : bubble.ranks()) {
            ranks.add(
                    new RankAnswer(
                            time.rank(),
                            time.busyNanos(),
                            time.idleNanos(),
                            time.idleInSpanNanos(),
                            memory.ranks().get(time.rank()).peakUnits()));
        }
        return new Answer(schedule.name(), bubble.makespanNanos(), bubble.bubbleShare(), ranks);
    }

    private void print(Answer answer) {
        out().printf(
                        "%s: makespan %d, bubble %.1f %%%n",
                        answer.name(), answer.makespan(), 100 * answer.bubble());
        out().println("rank    busy    idle  in span   peak activations");
        for (RankAnswer rank : answer.ranks()) {
            out().printf(
                            "%4d %7d %7d %8d %18d%n",
                            rank.rank(),
                            rank.busy(),
                            rank.idle(),
                            rank.idleInSpan(),
                            rank.peakActivations());
        }
        out().flush();
    }
}
