package dev.penstock.runtime.cli.schedule;

import dev.penstock.actors.spi.StepTraffic;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import dev.penstock.runtime.launch.RunParts;
import dev.penstock.runtime.lengths.UnequalSteps;
import dev.penstock.runtime.planning.SentBytes;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.CriticalPathSummary;
import dev.penstock.schedules.simulate.InFlight;
import dev.penstock.schedules.simulate.apart.ExchangingSteps;
import dev.penstock.schedules.validate.Conditions;
import dev.penstock.schedules.validate.ScheduleValidator;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** Times an order under given costs. */
@Command(
        name = "simulate",
        description =
                "Times an order: makespan, bubble, critical path, and what ranks do, hold and"
                        + " send.",
        footer = {
            "  penstock schedule simulate sample-configs/quickstart.conf",
            "  penstock schedule simulate my-order.csv --costs forward=10,backward=21",
            "  penstock schedule simulate --kind zb-h1 --ranks 4 --micro-batches 8",
            "  penstock schedule simulate --kind 1f1b --straggler 2=1.5",
            "  penstock schedule simulate --kind breadth-first --chunks 2 \\",
            "    --gathers per-pass --costs forward=4,backward=8,gather=3",
        })
final class ScheduleSimulateCommand extends PenstockCommand {
    /** Legs of the critical path that are printed, half of them from its end. */
    private static final int LEGS_SHOWN = 12;

    @Mixin private OrderArguments order = new OrderArguments();

    @Mixin private LoweringArguments lowering = new LoweringArguments();

    @Mixin private CostArguments costs = new CostArguments();

    @Option(names = "--json", description = "Print one JSON document.")
    private boolean json;

    @Override
    public Integer call() {
        var problems = new OptionProblems();
        Optional<GivenOrder> read = order.read(problems);
        lowering.check(problems);
        costs.check(read, problems);
        problems.orThrow();
        GivenOrder given = read.orElseThrow().decided();
        Schedule schedule = lowering.asRun(given);
        ScheduleValidator.validate(schedule, Conditions.training().withFrozen(given.frozen()))
                .orThrow();
        List<StepTraffic> traffic = traffic(given);
        var answer =
                SimulationAnswer.of(schedule, given.config(), costs, traffic)
                        .with(unequal(given, schedule));
        if (json) {
            printJson(answer);
        } else {
            print(answer, traffic);
            costs.codec(schedule, given.config())
                    .map(choice -> "best codec: " + choice.reason(given.config().orElseThrow()))
                    .ifPresent(out()::println);
            out().flush();
        }
        return ExitCode.OK;
    }

    /** Of a configuration's run; with another model or other ops than its own nothing is known. */
    private List<StepTraffic> traffic(GivenOrder given) {
        return lowering.isPlain() && !costs.namesModel() && given.loaded().isPresent()
                ? RunParts.plannedTraffic(given.loaded().get(), given.configured())
                : List.of();
    }

    /** Of a configuration's run as it is; null where its micro-batches are equal. */
    private UnequalSteps.@Nullable Times unequal(GivenOrder given, Schedule schedule) {
        if (!lowering.isPlain() || costs.namesModel() || given.loaded().isEmpty()) {
            return null;
        }
        return RunParts.unequalSteps(given.loaded().get(), given.configured())
                .map(
                        steps ->
                                steps.simulate(
                                        schedule,
                                        costs.model(schedule, given.config()),
                                        InFlight.unbounded()))
                .orElse(null);
    }

    private void print(SimulationAnswer answer, List<StepTraffic> traffic) {
        out().printf(
                        "%s: makespan %d, bubble %.1f %%%n",
                        answer.name(), answer.makespan(), 100 * answer.bubble());
        Long step = answer.step();
        if (step != null) {
            out().printf(
                            "with the commit and the update that follow, as measured: step %d%n",
                            step);
        }
        ExchangingSteps exchanging = answer.exchanging();
        if (exchanging != null) {
            out().printf(
                            "with what replicas exchange: makespan %.1f on average, behind an exchange %s%n",
                            exchanging.mean(),
                            exchanging.behind().stream()
                                    .map(String::valueOf)
                                    .collect(Collectors.joining(", ")));
        }
        UnequalSteps.Times unequal = answer.unequal();
        if (unequal != null) {
            out().printf(
                            "of unequal micro-batches: makespan %.1f on average of %d steps; %s%n",
                            unequal.arranged(), unequal.steps(), unequal.words());
        }
        Long usual = answer.makespanWithoutStragglers();
        if (usual != null) {
            out().printf(
                            "without stragglers: makespan %d, %.1f %% less%n",
                            usual, 100 * (1 - (double) usual / Math.max(1, answer.makespan())));
        }
        out().println("rank    busy    idle  in span   peak activations");
        for (SimulationAnswer.RankAnswer rank : answer.ranks()) {
            out().printf(
                            "%4d %7d %7d %8d %18d%n",
                            rank.rank(),
                            rank.busy(),
                            rank.idle(),
                            rank.idleInSpan(),
                            rank.peakActivations());
        }
        print(answer.criticalPath());
        printTraffic(answer);
        SentBytes.lines(traffic).forEach(out()::println);
        out().flush();
    }

    private void print(CriticalPathSummary path) {
        out().println(
                        path.shares().stream()
                                .map(s -> "%s %.1f %%".formatted(s.kind(), 100 * s.share()))
                                .collect(Collectors.joining(", ", "critical path: ", "")));
        List<CriticalPathSummary.Leg> legs = path.legs();
        for (int i = 0; i < legs.size(); i++) {
            boolean hidden = i >= LEGS_SHOWN / 2 && i < legs.size() - LEGS_SHOWN / 2;
            if (!hidden) {
                out().println("  " + described(legs.get(i)));
            } else if (i == LEGS_SHOWN / 2) {
                out().printf("  ... %d more%n", legs.size() - LEGS_SHOWN);
            }
        }
    }

    private static String described(CriticalPathSummary.Leg leg) {
        String ops =
                leg.ops() == 1
                        ? leg.firstOp()
                        : "%s .. %s (%d ops)".formatted(leg.firstOp(), leg.lastOp(), leg.ops());
        String what =
                switch (leg.activity()) {
                    case RUNS -> ops;
                    case ON_LINK, UNDER_WAY -> "transfer " + ops;
                    case BACKGROUND -> "beside computations: " + ops;
                };
        return "%d to %d: rank %d, %s".formatted(leg.fromNanos(), leg.toNanos(), leg.rank(), what);
    }

    private void printTraffic(SimulationAnswer answer) {
        boolean nothing =
                answer.links().isEmpty()
                        && answer.ranks().stream().allMatch(r -> r.gathers() + r.reductions() == 0);
        if (nothing) {
            return;
        }
        out().println("traffic, tensors of a step:");
        for (SimulationAnswer.LinkAnswer link : answer.links()) {
            out().printf(
                            "  rank %d to rank %d: %s%n",
                            link.fromRank(), link.toRank(), link.volume());
        }
        for (SimulationAnswer.RankAnswer rank : answer.ranks()) {
            out().printf(
                            "  rank %d sends %s, receives %s%s%s%n",
                            rank.rank(),
                            rank.sent(),
                            rank.received(),
                            rank.gathers() == 0 ? "" : ", gathers " + rank.gathers(),
                            rank.reductions() == 0 ? "" : ", reduces " + rank.reductions());
        }
    }
}
