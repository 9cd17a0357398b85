package dev.penstock.runtime.cli.command;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.cuda.device.DeviceException;
import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.config.reading.BadInputException;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.Problem;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import picocli.CommandLine;
import picocli.CommandLine.Command;

class FailureHandlerTest {
    @Test
    void anErrorMadeForPeopleIsPrintedAsItIs() {
        Cli failed = failing(new DeviceException("allocating 8 GiB: 2 GiB are left"));

        assertThat(failed.exitCode()).isEqualTo(ExitCode.FAILURE);
        assertThat(failed.err()).isEqualTo("penstock: allocating 8 GiB: 2 GiB are left\n");
    }

    @Test
    void badInputHasItsOwnExitCode() {
        Cli failed = failing(new BadInputException("no"));

        assertThat(failed.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
    }

    @Test
    void ofMoreProblemsThanAnybodyReadsTheirNumberIsTold() {
        List<Problem> each =
                IntStream.rangeClosed(1, 250)
                        .mapToObj(line -> new Problem("texts", line, "", "a text", "none", ""))
                        .toList();

        Cli failed = failing(new ConfigException(each));

        assertThat(failed.err().lines()).hasSize(102).startsWith("penstock: 250 problems");
        assertThat(failed.err()).endsWith("\n  and 150 more\n");
    }

    @Test
    void ofAnUnexpectedErrorOneSentenceIsPrintedAndTheTraceIsKept() throws IOException {
        Cli failed = failing(new ArithmeticException("by zero"));

        assertThat(failed.exitCode()).isEqualTo(ExitCode.FAILURE);
        assertThat(failed.err().lines()).hasSize(1);
        assertThat(failed.err()).contains("unexpected ArithmeticException: by zero");
        Path trace = Path.of(failed.err().strip().replaceFirst(".* ", ""));
        assertThat(trace)
                .content()
                .contains("at dev.penstock.runtime.cli.command.FailureHandlerTest");
        Files.delete(trace);
    }

    private static Cli failing(RuntimeException exception) {
        CommandLine commandLine = new CommandLine(new Failing(exception));
        commandLine.setExecutionExceptionHandler(new FailureHandler());
        return Cli.run(commandLine);
    }

    @Command(name = "fail")
    private record Failing(RuntimeException exception) implements Runnable {
        @Override
        public void run() {
            throw exception;
        }
    }
}
