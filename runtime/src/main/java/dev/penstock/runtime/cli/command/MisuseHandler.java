package dev.penstock.runtime.cli.command;

import java.io.PrintWriter;
import java.lang.reflect.Field;
import java.util.Optional;
import java.util.regex.Pattern;
import picocli.CommandLine;
import picocli.CommandLine.IParameterExceptionHandler;
import picocli.CommandLine.Model.ArgSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.UnmatchedArgumentException;

/** Answers a command line that cannot be understood: what is wrong, and where to read on. */
public final class MisuseHandler implements IParameterExceptionHandler {
    private static final Pattern NOT_WHOLE = Pattern.compile("is not an (int|long)\\b");

    @Override
    public int handleParseException(ParameterException exception, String[] arguments) {
        CommandLine command = exception.getCommandLine();
        PrintWriter err = command.getErr();
        err.println(
                "penstock: "
                        + whole(exception)
                                .or(() -> Meant.problem(exception))
                                .orElseGet(exception::getMessage));
        UnmatchedArgumentException.printSuggestions(exception, err);
        err.println("try " + command.getCommandSpec().qualifiedName() + " --help");
        err.flush();
        return ExitCode.BAD_INPUT;
    }

    /** What should have been a whole number, with the range that it may have. */
    private static Optional<String> whole(ParameterException exception) {
        ArgSpec argument = exception.getArgSpec();
        if (!(argument instanceof OptionSpec option)
                || !(option.userObject() instanceof Field field)
                || exception.getValue() == null
                || !NOT_WHOLE.matcher(String.valueOf(exception.getMessage())).find()) {
            return Optional.empty();
        }
        return Optional.ofNullable(field.getAnnotation(WholeNumber.class))
                .map(
                        range ->
                                "%s: expected %s, got %s"
                                        .formatted(
                                                option.longestName(),
                                                range.to() == Integer.MAX_VALUE
                                                        ? range.from() + " or more"
                                                        : "%d to %d"
                                                                .formatted(
                                                                        range.from(), range.to()),
                                                exception.getValue()));
    }
}
