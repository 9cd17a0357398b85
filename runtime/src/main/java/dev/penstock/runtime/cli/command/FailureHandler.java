package dev.penstock.runtime.cli.command;

import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.runtime.cluster.ClusterException;
import dev.penstock.runtime.config.reading.BadInputException;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.data.DataException;
import dev.penstock.runtime.metrics.RunDirectoryException;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.tokenizer.TokenizerFileException;
import dev.penstock.runtime.training.RunFailedException;
import dev.penstock.schedules.validate.InvalidScheduleException;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.IExecutionExceptionHandler;
import picocli.CommandLine.ParseResult;

/**
 * Says why a command failed. Exceptions that were made for people are printed as they are; of all
 * others one sentence, and the trace goes to a file.
 */
public final class FailureHandler implements IExecutionExceptionHandler {
    /** Of more problems than these, as with every line of a file, the others are much the same. */
    private static final int MOST_TOLD = 100;

    private static final Map<Class<? extends Exception>, Integer> FOR_PEOPLE =
            Map.ofEntries(
                    Map.entry(ConfigException.class, ExitCode.BAD_INPUT),
                    Map.entry(ClusterException.class, ExitCode.BAD_INPUT),
                    Map.entry(BadInputException.class, ExitCode.BAD_INPUT),
                    Map.entry(StoredFileException.class, ExitCode.BAD_INPUT),
                    Map.entry(TokenizerFileException.class, ExitCode.BAD_INPUT),
                    Map.entry(DataException.class, ExitCode.BAD_INPUT),
                    Map.entry(InvalidScheduleException.class, ExitCode.BAD_INPUT),
                    Map.entry(RunDirectoryException.class, ExitCode.BAD_INPUT),
                    Map.entry(RunFailedException.class, ExitCode.FAILURE),
                    Map.entry(DeviceException.class, ExitCode.FAILURE),
                    Map.entry(DataPlaneException.class, ExitCode.FAILURE));

    @Override
    public int handleExecutionException(
            Exception exception, CommandLine command, @Nullable ParseResult parsed) {
        PrintWriter err = command.getErr();
        Optional<Integer> known = exitCodeFor(exception);
        if (known.isPresent()) {
            print(err, exception);
            return known.get();
        }
        return unexpected(err, exception);
    }

    private static Optional<Integer> exitCodeFor(Exception exception) {
        return FOR_PEOPLE.entrySet().stream()
                .filter(known -> known.getKey().isInstance(exception))
                .map(Map.Entry::getValue)
                .findFirst();
    }

    private static void print(PrintWriter err, Exception exception) {
        if (exception instanceof ConfigException config) {
            List<Problem> problems = config.problems();
            if (problems.size() == 1) {
                err.println("penstock: " + problems.getFirst());
            } else {
                err.println("penstock: " + problems.size() + " problems");
                problems.stream()
                        .limit(MOST_TOLD)
                        .forEach(problem -> err.println(indented(problem)));
                if (problems.size() > MOST_TOLD) {
                    err.printf("  and %d more%n", problems.size() - MOST_TOLD);
                }
            }
        } else {
            err.println("penstock: " + exception.getMessage());
        }
        err.flush();
    }

    private static String indented(Problem problem) {
        return "  " + problem.toString().replace("\n", "\n  ");
    }

    /** One sentence, and the trace in a file. */
    public static int unexpected(PrintWriter err, Throwable failure) {
        err.printf(
                "penstock: unexpected %s: %s; %s%n",
                failure.getClass().getSimpleName(), failure.getMessage(), whereIsTheTrace(failure));
        err.flush();
        return ExitCode.FAILURE;
    }

    private static String whereIsTheTrace(Throwable exception) {
        StringWriter trace = new StringWriter();
        exception.printStackTrace(new PrintWriter(trace));
        try {
            Path file = Files.createTempFile("penstock-error-", ".log");
            Files.writeString(file, trace.toString());
            return "the full trace is in " + file;
        } catch (IOException e) {
            return "the full trace could not be written:\n" + trace;
        }
    }
}
