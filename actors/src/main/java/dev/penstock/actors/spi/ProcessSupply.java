package dev.penstock.actors.spi;

import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/** Starts what a run needs anew. Called by the supervisor's thread; must return at once. */
public interface ProcessSupply {
    /** Nothing can be started: the run waits for nodes that join by themselves. */
    ProcessSupply NONE =
            new ProcessSupply() {
                @Override
                public void start(Optional<Integer> rank) {}

                @Override
                public void restartLink(Set<String> gone) {}
            };

    /**
     * Starts a process whose node introduces itself to the supervisor.
     *
     * @param rank that it is for; empty for a spare
     */
    void start(Optional<Integer> rank);

    /**
     * Whether a process may live. One whose death was told does not, although something that it
     * said may come later.
     */
    default boolean mayLive(long pid) {
        return true;
    }

    /**
     * Told where a rank goes.
     *
     * @param process as its {@code NodeInfo.process} says
     */
    default void placed(int rank, String process, long pid) {}

    /**
     * Has ranks go to nodes that have others: that hold their mirrors, or because no node of their
     * own comes; if these have room, which nobody counts unless this says so.
     *
     * @param processes of each rank, as {@code NodeInfo.process} says
     * @return whether they do
     */
    default CompletionStage<Boolean> takeIn(Map<Integer, String> processes) {
        return CompletableFuture.completedStage(true);
    }

    /**
     * Starts media drivers for those that are gone, and tells the supervisor their directories.
     *
     * @param gone directories of drivers that are gone; empty text for one that is not known
     */
    void restartLink(Set<String> gone);
}
