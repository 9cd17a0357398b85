package dev.penstock.runtime.cli.schedule;

import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import dev.penstock.schedules.ir.ScheduleFormat;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Writes an order in another form. */
@Command(
        name = "convert",
        description = "Writes an order in another form, or with the transfers that it lacks.",
        footer = {
            "  penstock schedule convert order.csv --to text --output order.txt",
            "  penstock schedule convert order.txt --to torch-csv --pad",
            "  penstock schedule convert order.csv --split-backward --gathers per-op",
        })
final class ScheduleConvertCommand extends PenstockCommand {
    @Parameters(paramLabel = "FILE", description = "The order; - for the standard input.")
    @SuppressWarnings("NullAway.Init") // set by picocli before the call
    private Path file;

    @Option(
            names = "--from",
            completionCandidates = OrderFormats.class,
            converter = OrderFormats.Converter.class,
            description = {
                "How the file is written: ${COMPLETION-CANDIDATES}",
                "(default: torch-csv for *.csv, else text)."
            })
    private @Nullable ScheduleFormat from;

    @Option(names = "--lowered", description = "With the transfers that it lacks.")
    private boolean lowered;

    @Mixin private LoweringArguments lowering = new LoweringArguments();

    @Mixin private WrittenOrder written = new WrittenOrder();

    @Override
    public Integer call() {
        var given = GivenOrder.of(OrderFile.read(file, from).schedule());
        written.write(lowered ? lowering.lowered(given) : lowering.applied(given), out());
        return ExitCode.OK;
    }
}
