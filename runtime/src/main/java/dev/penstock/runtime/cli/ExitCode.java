package dev.penstock.runtime.cli;

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
}
