package dev.penstock.runtime.cli.schedule;

import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleFormat;
import dev.penstock.schedules.render.ScheduleDiff;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.InFlight;
import dev.penstock.schedules.simulate.MemoryProfile;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import dev.penstock.schedules.simulate.Simulation;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Says where two orders differ and what that costs. */
@Command(
        name = "diff",
        description = "Shows where two orders differ, and what the difference costs.",
        footer = "  penstock schedule diff old.txt new.csv --costs forward=2,backward=5")
final class ScheduleDiffCommand extends PenstockCommand {
    private static final int SHOWN = 8;

    /** What one order costs; no times if it comes to a standstill. */
    record Cost(
            String name, @Nullable Long makespan, @Nullable Double bubble, int peakActivations) {}

    /** The answer for programs. */
    record Answer(
            boolean equal,
            List<String> shapes,
            List<ScheduleDiff.RankDiff> ranks,
            Cost first,
            Cost second) {}

    @Parameters(index = "0", paramLabel = "A", description = "An order.")
    @SuppressWarnings("NullAway.Init") // set by picocli before the call
    private Path first;

    @Parameters(index = "1", paramLabel = "B", description = "Another.")
    @SuppressWarnings("NullAway.Init") // set by picocli before the call
    private Path second;

    @Option(
            names = "--format",
            completionCandidates = OrderFormats.class,
            converter = OrderFormats.Converter.class,
            description = {
                "How both are written: ${COMPLETION-CANDIDATES}",
                "(default: torch-csv for *.csv, else text)."
            })
    private @Nullable ScheduleFormat format;

    @Mixin private CostArguments costs = new CostArguments();

    @Option(names = "--json", description = "Print one JSON document.")
    private boolean json;

    @Override
    public Integer call() {
        Schedule a = OrderFile.read(first, format).schedule();
        Schedule b = OrderFile.read(second, format).schedule();
        ScheduleDiff diff = ScheduleDiff.of(a, b);
        var answer =
                new Answer(
                        diff.isEmpty(),
                        diff.shapes(),
                        diff.ranks(),
                        cost(first, a, costs.model(a)),
                        cost(second, b, costs.model(b)));
        if (json) {
            printJson(answer);
        } else {
            print(answer);
        }
        return ExitCode.OK;
    }

    private static Cost cost(Path file, Schedule schedule, CostModel model) {
        Simulation run = ScheduleSimulator.run(schedule, model, InFlight.unbounded());
        boolean runs = run.finished();
        return new Cost(
                file.toString(),
                runs ? run.timeline().makespanNanos() : null,
                runs ? run.timeline().bubble().bubbleShare() : null,
                MemoryProfile.of(schedule, PassKind.TRAINING).peakUnits());
    }

    private void print(Answer answer) {
        answer.shapes().forEach(out()::println);
        for (ScheduleDiff.RankDiff rank : answer.ranks()) {
            out().printf("rank %d differs from op %d on%n", rank.rank(), rank.position());
            out().printf("  A  %s%n  B  %s%n", rank.first(), rank.second());
            printOnly("A", rank.onlyFirst());
            printOnly("B", rank.onlySecond());
        }
        if (answer.equal()) {
            out().println("no difference");
        }
        out().println("   makespan   bubble   peak activations");
        printCost("A", answer.first());
        printCost("B", answer.second());
        out().flush();
    }

    private void printOnly(String which, List<String> ops) {
        if (!ops.isEmpty()) {
            String more = ops.size() > SHOWN ? " and %d more".formatted(ops.size() - SHOWN) : "";
            out().printf(
                            "  only %s: %s%s%n",
                            which,
                            String.join(" ", ops.subList(0, Math.min(SHOWN, ops.size()))),
                            more);
        }
    }

    private void printCost(String which, Cost cost) {
        if (cost.makespan() == null || cost.bubble() == null) {
            out().printf("%s  comes to a standstill; see penstock schedule validate%n", which);
        } else {
            out().printf(
                            "%s %10d %6.1f %% %18d%n",
                            which, cost.makespan(), 100 * cost.bubble(), cost.peakActivations());
        }
    }
}
