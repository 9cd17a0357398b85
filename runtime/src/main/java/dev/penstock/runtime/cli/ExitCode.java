package dev.penstock.runtime.cli;

import dev.penstock.actors.spi.RunOutcome;
import java.io.PrintWriter;

/** What the process tells its caller. */
final class ExitCode {
    static final int OK = 0;

    /** Something broke on the way. */
    static final int FAILURE = 1;

    /** What was asked for cannot be done: all reasons were printed. */
    static final int BAD_INPUT = 2;

    /** Ctrl-C: the step was finished and saved. */
    static final int INTERRUPTED = 130;

    private ExitCode() {}

    /** How a run ended; says why it failed if it did. */
    static int of(RunOutcome outcome, PrintWriter err) {
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
