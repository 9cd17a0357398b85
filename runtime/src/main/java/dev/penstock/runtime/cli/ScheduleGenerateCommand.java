package dev.penstock.runtime.cli;

import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.lower.Lowering;
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
        })
final class ScheduleGenerateCommand extends PenstockCommand {
    @Parameters(
            paramLabel = "KIND",
            completionCandidates = OrderArguments.Kinds.class,
            description = "One of ${COMPLETION-CANDIDATES}.")
    private String kind = "";

    @Mixin private ShapeArguments shape = new ShapeArguments();

    @Option(names = "--compute-only", description = "Computations alone, as generators make them.")
    private boolean computeOnly;

    @Mixin private WrittenOrder written = new WrittenOrder();

    @Override
    public Integer call() {
        Schedule schedule = shape.generate(kind);
        written.write(computeOnly ? schedule : Lowering.lower(schedule), out());
        return ExitCode.OK;
    }
}
