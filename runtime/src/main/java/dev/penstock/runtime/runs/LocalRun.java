package dev.penstock.runtime.runs;

import dev.penstock.runtime.metrics.RunKeeper;
import java.nio.file.Path;
import java.time.Instant;
import java.util.Optional;
import java.util.OptionalDouble;

/**
 * A run of this machine, as its files and its lock tell of it.
 *
 * @param path of its directory
 * @param name of the run in its configuration
 * @param step the last committed one; 0 before the first
 * @param steps that it is to do; 0 if that is not known
 * @param loss of that step, nats per token; empty before the first, and where no log tells it
 * @param bytes of all its files
 * @param changed when it last did something
 * @param keeper the process that trains it now
 */
public record LocalRun(
        Path path,
        String name,
        State state,
        long step,
        long steps,
        OptionalDouble loss,
        long bytes,
        Instant changed,
        Optional<RunKeeper> keeper) {

    /** What became of it. */
    public enum State {
        /** A living process has it. */
        RUNNING,
        /** It did all of its steps. */
        COMPLETE,
        /** It was asked to end before that, by Ctrl-C or {@code penstock stop}, and saved. */
        INTERRUPTED,
        /** Something went wrong. */
        FAILED,
        /** Its process is gone and left no word: it was killed, or its machine went down. */
        STOPPED
    }
}
