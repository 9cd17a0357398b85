package dev.penstock.runtime.cli.command;

import java.io.PrintWriter;
import java.util.concurrent.Callable;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/** What all commands that do something share: where they write. Returns the exit code. */
public abstract class PenstockCommand extends CommandWithHelp implements Callable<Integer> {
    @Spec
    @SuppressWarnings("NullAway.Init") // set by picocli before the call
    private CommandSpec spec;

    /** For what was asked for. */
    protected final PrintWriter out() {
        return spec.commandLine().getOut();
    }

    /** For everything else: progress, warnings. */
    protected final PrintWriter err() {
        return spec.commandLine().getErr();
    }

    protected final CommandSpec spec() {
        return spec;
    }

    /** One JSON document, for programs. */
    protected final void printJson(Object document) {
        out().println(Json.text(document));
    }
}
