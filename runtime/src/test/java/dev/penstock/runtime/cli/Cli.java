package dev.penstock.runtime.cli;

import java.io.PrintWriter;
import java.io.StringWriter;
import picocli.CommandLine;

/** Runs the command line inside the test and catches what it prints. */
record Cli(int exitCode, String out, String err) {

    static Cli run(String... arguments) {
        return run(Main.commandLine(), arguments);
    }

    static Cli run(CommandLine commandLine, String... arguments) {
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        commandLine.setOut(new PrintWriter(out));
        commandLine.setErr(new PrintWriter(err));
        int exitCode = commandLine.execute(arguments);
        return new Cli(exitCode, out.toString(), err.toString());
    }
}
