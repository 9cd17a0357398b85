package dev.penstock.schedules.ir;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/** The formats that schedules are kept in. */
public enum ScheduleFormat {
    /** Ours, which can say everything: {@link ScheduleText}. */
    TEXT("text"),
    /** That of PyTorch's pipelining: {@link TorchCsv}. */
    TORCH_CSV("torch-csv");

    private final String label;

    ScheduleFormat(String label) {
        this.label = label;
    }

    /** What users call it. */
    public String label() {
        return label;
    }

    /** The names of all formats. */
    public static List<String> labels() {
        return Arrays.stream(values()).map(ScheduleFormat::label).toList();
    }

    /**
     * The format of this name.
     *
     * @throws IllegalArgumentException if there is none
     */
    public static ScheduleFormat named(String label) {
        return Arrays.stream(values())
                .filter(format -> format.label.equals(label))
                .findFirst()
                .orElseThrow(
                        () ->
                                new IllegalArgumentException(
                                        "unknown format '%s', expected %s"
                                                .formatted(label, String.join(" or ", labels()))));
    }

    /** The format of a file of this name: CSV if it ends so, else text. */
    public static ScheduleFormat ofFile(String fileName) {
        return fileName.toLowerCase(Locale.ROOT).endsWith(".csv") ? TORCH_CSV : TEXT;
    }

    /**
     * The schedule of a text with the positions of its ops.
     *
     * @throws ScheduleTextException with all problems of the text
     */
    public ParsedSchedule read(String text) {
        return switch (this) {
            case TEXT -> ScheduleText.read(text);
            case TORCH_CSV -> TorchCsv.read(text);
        };
    }

    /**
     * The text of a schedule.
     *
     * @throws IllegalArgumentException for ops that the format cannot say
     */
    public String print(Schedule schedule) {
        return switch (this) {
            case TEXT -> ScheduleText.print(schedule);
            case TORCH_CSV -> TorchCsv.print(schedule);
        };
    }
}
