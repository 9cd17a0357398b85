package dev.penstock.junit;

import dev.penstock.schedules.ir.ParsedSchedule;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleFormat;
import dev.penstock.schedules.ir.ScheduleTextException;
import dev.penstock.schedules.ir.TextPosition;
import dev.penstock.schedules.ir.TextProblem;
import dev.penstock.schedules.lower.Lowering;
import dev.penstock.schedules.lower.LoweringOptions;
import dev.penstock.schedules.render.FaultGrid;
import dev.penstock.schedules.simulate.InFlight;
import dev.penstock.schedules.validate.Conditions;
import dev.penstock.schedules.validate.ScheduleValidator;
import dev.penstock.schedules.validate.ValidationReport;
import dev.penstock.schedules.validate.Violation;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.Extension;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;
import org.junit.jupiter.api.extension.TestTemplateInvocationContext;

/** The proof of one file's order, and what it gives to the body of its test. */
final class OrderProof
        implements TestTemplateInvocationContext, BeforeEachCallback, ParameterResolver {
    private final Path file;
    private final ProvedOrder asked;
    private @Nullable Schedule order;
    private @Nullable ValidationReport report;

    OrderProof(Path file, ProvedOrder asked) {
        this.file = file;
        this.asked = asked;
    }

    @Override
    public String getDisplayName(int invocation) {
        return file.toString();
    }

    @Override
    public List<Extension> getAdditionalExtensions() {
        return List.of(this);
    }

    @Override
    public void beforeEach(ExtensionContext context) {
        ParsedSchedule parsed = read();
        order = parsed.schedule();
        boolean asWritten = order.hasTransfers();
        ValidationReport found =
                ScheduleValidator.validate(order, asWritten ? written() : limited());
        require(found, Optional.of(parsed));
        report = asWritten ? found : asRun(order);
    }

    /** Its transfers come early enough for the buffers, and may still not do. */
    private ValidationReport asRun(Schedule computations) {
        LoweringOptions plain =
                LoweringOptions.plain().withSharedGroups(computations.sharedGroups());
        Schedule lowered =
                Lowering.lower(
                        computations,
                        asked.buffers() > 0 ? plain.withCapacity(asked.buffers()) : plain);
        InFlight buffers =
                asked.buffers() > 0 ? InFlight.uniform(asked.buffers()) : InFlight.auto(lowered);
        ValidationReport judged = ScheduleValidator.validate(lowered, limited().with(buffers));
        require(judged, Optional.empty());
        return judged;
    }

    /** An order that has its transfers must do with the buffers that are given. */
    private Conditions written() {
        return asked.buffers() > 0 ? limited().with(InFlight.uniform(asked.buffers())) : limited();
    }

    private Conditions limited() {
        Conditions training = Conditions.training();
        return asked.peakUnits() > 0 ? training.withPeakUnitsLimit(asked.peakUnits()) : training;
    }

    private ParsedSchedule read() {
        ScheduleFormat format = ScheduleFormat.ofFile(file.toString());
        try {
            return format.read(Files.readString(file));
        } catch (IOException e) {
            throw new AssertionError(
                    "%s: expected a file with an order, got none that can be read (working directory %s)"
                            .formatted(file, Path.of("").toAbsolutePath()),
                    e);
        } catch (ScheduleTextException e) {
            throw new AssertionError(
                    e.problems().stream()
                            .map(this::described)
                            .collect(
                                    Collectors.joining(
                                            "\n",
                                            "%s is not a schedule (read as %s)\n"
                                                    .formatted(file, format.label()),
                                            "")),
                    e);
        }
    }

    private String described(TextProblem problem) {
        return "  %s: %s".formatted(at(problem.position()), problem.message());
    }

    private String at(TextPosition position) {
        return "%s:%d:%d".formatted(file, position.line(), position.column());
    }

    /**
     * @param positions empty where the ops are not those of the file
     */
    private void require(ValidationReport judged, Optional<ParsedSchedule> positions) {
        if (judged.isValid()) {
            return;
        }
        var text = new StringBuilder();
        int count = judged.violations().size();
        text.append(
                "%s is invalid: %d %s%n".formatted(file, count, count == 1 ? "error" : "errors"));
        for (Violation violation : judged.violations()) {
            text.append("  ");
            positions.ifPresent(
                    parsed -> text.append(at(parsed.positionOf(violation.place()))).append(": "));
            text.append(violation.message()).append('\n');
        }
        throw new AssertionError(text.append(FaultGrid.of(judged)).toString());
    }

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        Class<?> type = parameter.getParameter().getType();
        return type == Schedule.class || type == ValidationReport.class;
    }

    @Override
    public @Nullable Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
        return parameter.getParameter().getType() == Schedule.class ? order : report;
    }
}
