package dev.penstock.runtime.cli;

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
        })
final class ScheduleGenerateCommand extends PenstockCommand {
    @Parameters(
            paramLabel = "KIND",
            completionCandidates = OrderArguments.Kinds.class,
            description = "One of ${COMPLETION-CANDIDATES}.")
    private String kind = "";

    @Mixin private ShapeArguments shape = new ShapeArguments();

    @Option(
            names = "--compute-only",
            description = "Computations alone: no transfers, gathers and reductions.")
    private boolean computeOnly;

    @Mixin private LoweringArguments lowering = new LoweringArguments();

    @Mixin private WrittenOrder written = new WrittenOrder();

    @Override
    public Integer call() {
        var given = GivenOrder.of(shape.generate(kind));
        if (computeOnly && lowering.addsOps()) {
            throw new BadInputException(
                    "expected --compute-only or --gathers and --reduce, got both");
        }
        written.write(computeOnly ? lowering.applied(given) : lowering.lowered(given), out());
        return ExitCode.OK;
    }
}
