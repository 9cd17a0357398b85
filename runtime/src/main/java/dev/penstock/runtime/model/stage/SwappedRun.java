package dev.penstock.runtime.model.stage;

import dev.penstock.runtime.model.shape.SwapCommit;
import dev.penstock.runtime.model.swap.SwapState;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Optional;
import java.util.function.Consumer;

/**
 * The folder in which all stages of a run swap, before they are built.
 *
 * @param root as {@code device.swap} names it
 * @param run its identity: what another one left in the folder is of no use to it
 */
public record SwappedRun(Path root, int replicas, int stages, String run) {

    /**
     * Bytes that a run which begins anew could write there.
     *
     * @throws IOException if it can be no folder
     */
    public static long roomBytes(Path root) throws IOException {
        return SwapState.roomBytes(root);
    }

    /** See {@link SwapState#freeBytes}. */
    public static long freeBytes(Path folder) throws IOException {
        return SwapState.freeBytes(folder);
    }

    /** Takes the folder for the run. */
    public void begin() throws IOException {
        state().own(run);
    }

    /** The update from which the stages can go on; see {@link SwapState#committed}. */
    public Optional<SwapCommit> committed(Consumer<String> note) {
        return state().committed(run, note);
    }

    /** Removes the files of the stages, which are closed, and nothing else. */
    public void remove() throws IOException {
        state().remove();
    }

    private SwapState state() {
        return new SwapState(root, replicas, stages);
    }
}
