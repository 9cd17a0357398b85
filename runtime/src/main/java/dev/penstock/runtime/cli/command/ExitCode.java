package dev.penstock.runtime.cli.command;

import dev.penstock.actors.spi.RunOutcome;
import java.io.PrintWriter;

/** What the process tells its caller. */
public final class ExitCode {
    public static final int OK = 0;

    /** Something broke on the way. */
    public static final int FAILURE = 1;

    /** What was asked for cannot be done: all reasons were printed. */
    public static final int BAD_INPUT = 2;

    /** Ctrl-C: the step was finished and saved. */
    public static final int INTERRUPTED = 130;

    private ExitCode() {}

    /** How a run ended; says why it failed if it did. */
    public static int of(RunOutcome outcome, PrintWriter err) {
        return switch (outcome) {
            case RunOutcome.Completed _ -> OK;
            case RunOutcome.Interrupted _ -> INTERRUPTED;
            case RunOutcome.Failed(_, String reason) -> {
                err.println("penstock: " + reason);
                err.flush();
                yield FAILURE;
            }
        };
    }
}
