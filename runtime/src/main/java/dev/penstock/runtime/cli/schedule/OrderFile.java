package dev.penstock.runtime.cli.schedule;

import dev.penstock.runtime.config.order.OrderProblems;
import dev.penstock.runtime.config.reading.BadInputException;
import dev.penstock.runtime.config.reading.FileCause;
import dev.penstock.schedules.ir.ParsedSchedule;
import dev.penstock.schedules.ir.ScheduleFormat;
import dev.penstock.schedules.ir.ScheduleTextException;
import dev.penstock.schedules.ir.TextProblem;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** Reads orders from files, or from the standard input where the file is {@code -}. */
final class OrderFile {
    private static final String STANDARD_INPUT = "-";

    private OrderFile() {}

    /**
     * @param format null for what the file's name says
     * @throws BadInputException with all problems of the file
     */
    static ParsedSchedule read(Path file, @Nullable ScheduleFormat format) {
        ScheduleFormat used = format == null ? ScheduleFormat.ofFile(file.toString()) : format;
        try {
            return used.read(text(file));
        } catch (ScheduleTextException e) {
            throw new BadInputException(
                    OrderProblems.of(e).stream()
                            .map(problem -> described(file, problem))
                            .collect(
                                    Collectors.joining(
                                            "\n",
                                            "%s is not a schedule (read as %s)\n"
                                                    .formatted(file, used.label()),
                                            "")));
        }
    }

    private static String text(Path file) {
        try {
            return file.toString().equals(STANDARD_INPUT)
                    ? new String(System.in.readAllBytes(), StandardCharsets.UTF_8)
                    : Files.readString(file);
        } catch (IOException e) {
            throw new BadInputException(
                    "cannot read %s: %s; check the path".formatted(file, FileCause.of(e)));
        }
    }

    private static String described(Path file, TextProblem problem) {
        return "  %s:%d:%d: %s"
                .formatted(
                        file,
                        problem.position().line(),
                        problem.position().column(),
                        problem.message());
    }
}
