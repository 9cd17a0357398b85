package dev.penstock.runtime.cli.schedule;

import dev.penstock.runtime.config.reading.BadInputException;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleFormat;
import dev.penstock.schedules.ir.TorchCsv;
import java.io.PrintWriter;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** How and where a command writes an order. */
final class WrittenOrder extends WrittenText {
    @Option(
            names = {"--format", "--to"},
            completionCandidates = OrderFormats.class,
            converter = OrderFormats.Converter.class,
            description = {
                "How it is written: ${COMPLETION-CANDIDATES}",
                "(default: torch-csv for --output *.csv, else text)."
            })
    private @Nullable ScheduleFormat format;

    @Option(
            names = "--pad",
            description = "In torch-csv: idle cells, so that a column is a time step.")
    private boolean pad;

    /**
     * @throws BadInputException if the format cannot say it, or the file cannot be written
     */
    void write(Schedule schedule, PrintWriter out) {
        String text;
        try {
            text =
                    pad && format() == ScheduleFormat.TORCH_CSV
                            ? TorchCsv.printPadded(schedule)
                            : format().print(schedule);
        } catch (IllegalArgumentException e) {
            throw new BadInputException(String.valueOf(e.getMessage()));
        }
        write(text, out);
    }

    private ScheduleFormat format() {
        if (format != null) {
            return format;
        }
        return output().map(file -> ScheduleFormat.ofFile(file.toString()))
                .orElse(ScheduleFormat.TEXT);
    }
}
