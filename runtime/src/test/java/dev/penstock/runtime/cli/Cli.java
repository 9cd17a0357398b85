package dev.penstock.runtime.cli;

import java.io.BufferedWriter;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.io.Writer;
import picocli.CommandLine;

/**
 * Runs the command line inside the test and catches what it prints: as in a process, what nobody
 * flushed is not seen.
 */
public record Cli(int exitCode, String out, String err) {

    public static Cli run(String... arguments) {
        return run(Main.commandLine(arguments), arguments);
    }

    public static Cli run(CommandLine commandLine, String... arguments) {
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        int exitCode = execute(commandLine, out, err, arguments);
        return new Cli(exitCode, out.toString(), err.toString());
    }

    /** Runs it where somebody reads along; returns the exit code. */
    public static int run(Writer output, String... arguments) {
        return execute(Main.commandLine(arguments), output, output, arguments);
    }

    private static int execute(
            CommandLine commandLine, Writer out, Writer err, String... arguments) {
        commandLine.setOut(new PrintWriter(new BufferedWriter(out), true));
        commandLine.setErr(new PrintWriter(new BufferedWriter(err), true));
        return commandLine.execute(arguments);
    }
}
