package dev.penstock.runtime.launch;

import dev.penstock.runtime.data.GivenTokens;
import dev.penstock.runtime.launch.RunOptions.DumpRequest;
import dev.penstock.runtime.model.shape.SwapCommit;
import java.nio.file.Path;
import java.util.Optional;

/**
 * How a run is asked to begin, beside its configuration.
 *
 * @param resume checkpoint to continue from
 * @param init weights to start from, in Hugging Face's format
 * @param dump gradients to write, if any
 * @param evaluateOnly measure the held-out loss and stop
 * @param tokens of the program that asks, which no other process can have; empty where files have
 *     them
 */
public record RunStart(
        Optional<Path> resume,
        Optional<Path> init,
        Optional<DumpRequest> dump,
        boolean evaluateOnly,
        Optional<GivenTokens> tokens,
        Optional<SwapCommit> swapped) {

    /** One whose stages have their first values from elsewhere. */
    public RunStart(
            Optional<Path> resume,
            Optional<Path> init,
            Optional<DumpRequest> dump,
            boolean evaluateOnly,
            Optional<GivenTokens> tokens) {
        this(resume, init, dump, evaluateOnly, tokens, Optional.empty());
    }

    /** One whose tokens are in files. */
    public RunStart(
            Optional<Path> resume,
            Optional<Path> init,
            Optional<DumpRequest> dump,
            boolean evaluateOnly) {
        this(resume, init, dump, evaluateOnly, Optional.empty());
    }

    /** A new run from random weights. */
    public static RunStart fresh() {
        return new RunStart(Optional.empty(), Optional.empty(), Optional.empty(), false);
    }

    /**
     * A measurement of what a checkpoint has learned.
     *
     * @param checkpoint empty where there is none to be found: for checks of the rest
     */
    public static RunStart evaluationOf(Optional<Path> checkpoint) {
        return new RunStart(checkpoint, Optional.empty(), Optional.empty(), true);
    }

    /** The same with tokens of the program that asks, if there are any. */
    public RunStart with(Optional<GivenTokens> given) {
        return new RunStart(resume, init, dump, evaluateOnly, given, swapped);
    }

    /** The same, going on from an update of stages that are swapped. */
    public RunStart after(SwapCommit update) {
        return new RunStart(resume, init, dump, evaluateOnly, tokens, Optional.of(update));
    }

    /** This start as a run of its own in a directory. */
    public RunOptions in(Path directory, String name) {
        return new RunOptions(
                RunOptions.newRunId(name),
                directory.toAbsolutePath(),
                resume,
                init,
                dump,
                evaluateOnly);
    }
}
