package dev.penstock.runtime.cli;

import dev.penstock.schedules.ir.ParsedSchedule;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleText;
import dev.penstock.schedules.ir.TorchCsv;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** How an order is written in a file. */
enum OrderFormat {
    /** The project's own form: a header, then a line per rank. */
    TEXT("text"),
    /** That of PyTorch's pipelining. */
    TORCH_CSV("torch-csv");

    private final String word;

    OrderFormat(String word) {
        this.word = word;
    }

    /** For picocli's help and completion. */
    static final class Words extends ArrayList<String> {
        private static final long serialVersionUID = 1L;

        Words() {
            super(words());
        }
    }

    /** Reads the words of a command line. */
    static final class Converter implements ITypeConverter<OrderFormat> {
        @Override
        public OrderFormat convert(String value) {
            return Arrays.stream(values())
                    .filter(format -> format.word.equals(value))
                    .findFirst()
                    .orElseThrow(
                            () ->
                                    new TypeConversionException(
                                            "expected one of %s, got '%s'"
                                                    .formatted(String.join(", ", words()), value)));
        }
    }

    private static List<String> words() {
        return Arrays.stream(values()).map(format -> format.word).toList();
    }

    /** What a file's name says. */
    static OrderFormat of(Path file) {
        return file.toString().endsWith(".csv") ? TORCH_CSV : TEXT;
    }

    ParsedSchedule read(String text) {
        return switch (this) {
            case TEXT -> ScheduleText.read(text);
            case TORCH_CSV -> TorchCsv.read(text);
        };
    }

    /**
     * @param padded with idle cells, where the format has them
     * @throws IllegalArgumentException for ops that the format cannot say
     */
    String print(Schedule schedule, boolean padded) {
        return switch (this) {
            case TEXT -> ScheduleText.print(schedule);
            case TORCH_CSV -> padded ? TorchCsv.printPadded(schedule) : TorchCsv.print(schedule);
        };
    }

    @Override
    public String toString() {
        return word;
    }
}
