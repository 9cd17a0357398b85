package dev.penstock.runtime.cli.schedule;

import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import dev.penstock.runtime.config.reading.BadInputException;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.generate.base.GenerateOptions;
import dev.penstock.schedules.generate.base.ScheduleKind;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Writes the order of a kind, to be read, changed and run. */
@Command(
        name = "generate",
        description = "Writes the order of a kind and a shape, with its sends and receives.",
        footer = {
            "  penstock schedule generate 1f1b --ranks 4 --micro-batches 8 --compute-only",
            "  penstock schedule generate gpipe --ranks 4 --format torch-csv --pad",
            "  penstock schedule generate breadth-first --ranks 4 --chunks 2 --slices 1 \\",
            "    --gathers per-pass --look-ahead 1 --reduce per-step",
            "  penstock schedule generate 1f1b --split-backward --recompute full",
            "  penstock schedule generate zb-1p --costs forward=10,backward-input=11",
            "  penstock schedule generate wired-zb --ranks 2 --peers 4 \\",
            "    --micro-batches 32 --without 5",
            "  penstock schedule generate seq1f1b --slices 4 --slice-lengths balanced \\",
            "    --tokens 4096",
            "  penstock schedule generate terapipe --slice-lengths planned \\",
            "    --micro-batches 2 --hardware sample-configs/hardware/4-laptops.conf",
            "  penstock schedule generate terapipe --slice-lengths planned --ranks 2 \\",
            "    --profile runs/whole-0,runs/halves-0,runs/thirds-0,runs/quarters-0",
        })
final class ScheduleGenerateCommand extends PenstockCommand {
    @Parameters(
            paramLabel = "KIND",
            completionCandidates = OrderArguments.Kinds.class,
            description = "One of ${COMPLETION-CANDIDATES}.")
    private String kind = "";

    @Mixin private ShapeArguments shape = new ShapeArguments();

    @Mixin private SliceArguments slices = new SliceArguments();

    @Mixin private CostArguments costs = new CostArguments();

    @Option(
            names = "--compute-only",
            description = "Computations alone: no transfers, gathers and reductions.")
    private boolean computeOnly;

    @Mixin private LoweringArguments lowering = new LoweringArguments();

    @Mixin private WrittenOrder written = new WrittenOrder();

    @Override
    public Integer call() {
        var problems = new OptionProblems();
        shape.check(problems);
        slices.check(problems);
        costs.check(problems);
        lowering.check(problems);
        problems.orThrow();
        var given = GivenOrder.of(order());
        if (computeOnly && lowering.addsOps()) {
            throw new BadInputException(
                    "expected --compute-only or --gathers and --reduce, got both");
        }
        written.write(computeOnly ? lowering.applied(given) : lowering.lowered(given), out());
        return ExitCode.OK;
    }

    /** Costs are for slices that are planned, or for kinds that search. */
    private Schedule order() {
        PipelineShape asked = shape.shape(kind);
        requireNoneIgnored();
        if (WiredArguments.isWired(kind)) {
            return wired();
        }
        PipelineShape cut = slices.cut(asked, costs, err());
        GenerateOptions options = shape.options(kind);
        Schedule order = ShapeArguments.generate(kind, cut, options);
        return searchesForCosts()
                ? ShapeArguments.generate(kind, cut, options.withCosts(costs.perRank(order)))
                : order;
    }

    /** Costs are for speeds: of balanced wirings, and of the order that ranks work in. */
    private Schedule wired() {
        if (!slices.areGiven()) {
            throw new BadInputException(
                    "--slice-lengths: expected the lengths of a wired order as --slices 64,32,32");
        }
        Schedule order = shape.generate(kind);
        return searchesForCosts() ? shape.generateWired(kind, costs.perRank(order)) : order;
    }

    private boolean searchesForCosts() {
        return (costs.given() || costs.hasStragglers()) && !slices.planned();
    }

    private void requireNoneIgnored() {
        List<String> problems = new ArrayList<>(shape.misfits(kind));
        if (searchesForCosts()
                && !WiredArguments.isWired(kind)
                && !Generators.kind(kind).search().usesCosts()) {
            problems.add(
                    ShapeArguments.ignored(
                            "--costs, --profile, --hardware, --straggler",
                            kind,
                            ScheduleKind.Search::usesCosts,
                            "leave them out; schedule simulate times any order with them"));
        }
        if (!problems.isEmpty()) {
            throw new BadInputException(String.join("\n", problems));
        }
    }
}
