package dev.penstock.runtime.cli.schedule;

import dev.penstock.runtime.config.reading.BadInputException;
import dev.penstock.runtime.config.reading.FileCause;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleFormat;
import dev.penstock.schedules.ir.TorchCsv;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** How and where a command writes an order. */
final class WrittenOrder {
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

    @Option(
            names = {"-o", "--output"},
            paramLabel = "FILE",
            description = "Where to write (default: the standard output).")
    private @Nullable Path output;

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
        writeText(text, output, out);
    }

    private ScheduleFormat format() {
        if (format != null) {
            return format;
        }
        return output == null ? ScheduleFormat.TEXT : ScheduleFormat.ofFile(output.toString());
    }

    /** Writes to the file, or to {@code out} where there is none. */
    static void writeText(String text, @Nullable Path file, PrintWriter out) {
        if (file == null) {
            out.print(text);
            out.flush();
            return;
        }
        try {
            Files.writeString(file, text);
        } catch (IOException e) {
            throw new BadInputException(
                    "cannot write %s: %s; check the path".formatted(file, FileCause.of(e)));
        }
    }
}
