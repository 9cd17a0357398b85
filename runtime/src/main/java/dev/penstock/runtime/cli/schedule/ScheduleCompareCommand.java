package dev.penstock.runtime.cli.schedule;

import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import dev.penstock.runtime.config.reading.BadInputException;
import dev.penstock.schedules.generate.base.OpCosts;
import dev.penstock.schedules.lower.LoweringOptions;
import dev.penstock.schedules.plan.FamilyComparison;
import dev.penstock.schedules.simulate.UnitCosts;
import java.util.List;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** One table of all families. */
@Command(
        name = "compare",
        description = {
            "Compares all families for one shape: what a step takes, idles, holds and sends.",
            "A chunk and a slice cost their part of a rank's layers and of a sequence."
        },
        footer = {
            "  penstock schedule compare --ranks 4 --micro-batches 8",
            "  penstock schedule compare --ranks 8 --micro-batches 32 --chunks 2 --slices 4",
            "  penstock schedule compare --gathers per-pass --costs gather=2",
        })
final class ScheduleCompareCommand extends PenstockCommand {
    @Option(
            names = "--ranks",
            defaultValue = "4",
            description = "Ranks (default: ${DEFAULT-VALUE}).")
    private int ranks;

    @Option(
            names = "--micro-batches",
            defaultValue = "8",
            description = "Micro-batches of a step (default: ${DEFAULT-VALUE}).")
    private int microBatches;

    @Option(
            names = "--chunks",
            paramLabel = "V",
            defaultValue = "2",
            description =
                    "Stages per rank of families that have several (default: ${DEFAULT-VALUE}).")
    private int chunks;

    @Option(
            names = "--slices",
            split = ",",
            paramLabel = "S|L1,L2,..",
            defaultValue = "4",
            description = {
                "Token slices of families that cut sequences: their number, or their lengths",
                "(default: ${DEFAULT-VALUE})."
            })
    private List<Integer> slices = List.of(4);

    @Option(
            names = "--costs",
            defaultValue = "",
            paramLabel = "OP=TIME,..",
            description = {
                "Times of a micro-batch through all of a rank's layers, in any whole unit:",
                "forward, backward-input, backward-weight (default 1 each), transfer,",
                "gather and reduce of all its parameters (default 0 each)."
            })
    private String costs = "";

    @Mixin private LoweringArguments lowering = new LoweringArguments();

    @Option(names = "--json", description = "Print one JSON document.")
    private boolean json;

    @Override
    public Integer call() {
        var problems = new OptionProblems();
        ShapeArguments.check(problems, ranks, microBatches, chunks, slices);
        CostArguments.check(problems, costs);
        lowering.check(problems);
        problems.orThrow();
        FamilyComparison comparison;
        LoweringOptions added = lowering.options();
        try {
            UnitCosts units = UnitCosts.parse(costs);
            comparison =
                    FamilyComparison.of(
                            new FamilyComparison.Work(
                                    ranks,
                                    microBatches,
                                    chunks,
                                    ShapeArguments.sliceLengths(slices),
                                    opCosts(units),
                                    added,
                                    units.of(UnitCosts.Kind.GATHER),
                                    units.of(UnitCosts.Kind.REDUCE)));
        } catch (IllegalArgumentException e) {
            throw new BadInputException(String.valueOf(e.getMessage()));
        }
        if (json) {
            printJson(comparison);
        } else {
            print(comparison);
        }
        return ExitCode.OK;
    }

    private static OpCosts opCosts(UnitCosts costs) {
        return new OpCosts(
                costs.of(UnitCosts.Kind.FORWARD),
                costs.of(UnitCosts.Kind.BACKWARD_INPUT),
                costs.of(UnitCosts.Kind.BACKWARD_WEIGHT),
                costs.of(UnitCosts.Kind.TRANSFER));
    }

    private void print(FamilyComparison comparison) {
        out().printf("%d ranks, %d micro-batches%n", ranks, microBatches);
        out().println(
                        "kind                  chunks slices   makespan   bubble  in span   peak A"
                                + "   traffic"
                                + (lowering.addsOps() ? "  gathers  reductions" : ""));
        for (FamilyComparison.Row row : comparison.rows()) {
            out().printf(
                            "%-21s %6d %6d %10.2f %6.1f %% %6.1f %% %8.2f %9.2f%s%n",
                            row.kind(),
                            row.chunks(),
                            row.slices(),
                            row.makespan(),
                            100 * row.bubble(),
                            100 * row.idleInSpan(),
                            row.peakActivations(),
                            row.traffic(),
                            lowering.addsOps()
                                    ? "%9.2f %11.2f".formatted(row.gathers(), row.reductions())
                                    : "");
        }
        for (FamilyComparison.Refusal refusal : comparison.refused()) {
            out().printf(
                            "%-21s does not run in this shape: %s%n",
                            refusal.kind(), refusal.reason());
        }
        out().println(
                        "peak A: activations of one micro-batch for all layers of a rank; traffic:"
                                + " micro-batches' boundary tensors that leave a rank"
                                + (lowering.addsOps()
                                        ? "; gathers and reductions: how often each stage has them"
                                        : ""));
        out().flush();
    }
}
