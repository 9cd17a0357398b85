package dev.penstock.runtime.cli;

import java.io.BufferedWriter;
import java.io.PrintWriter;
import java.io.StringWriter;
import picocli.CommandLine;

/**
 * Runs the command line inside the test and catches what it prints: as in a process, what nobody
 * flushed is not seen.
 */
public record Cli(int exitCode, String out, String err) {

    public static Cli run(String... arguments) {
        return run(Main.commandLine(), arguments);
    }

    public static Cli run(CommandLine commandLine, String... arguments) {
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        commandLine.setOut(new PrintWriter(new BufferedWriter(out), true));
        commandLine.setErr(new PrintWriter(new BufferedWriter(err), true));
        int exitCode = commandLine.execute(arguments);
        return new Cli(exitCode, out.toString(), err.toString());
    }
}
