package dev.penstock.actors.cluster;

import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;

/** Makes runs of what clients submit; implemented by the application, asked on the seed. */
public interface RunMaker {
    /** Told what becomes of runs that are looked for, from any thread. */
    @FunctionalInterface
    interface Finder {
        /** One is open. */
        void opened(ClusterRun run);

        /** Nobody keeps one, and it is being opened. */
        default void opens(String run) {}

        /** One cannot be opened. */
        default void cannotOpen(String run, String reason) {}

        /**
         * Somebody has one.
         *
         * @param holder words about who, with a space before them; empty if that is not known
         */
        default void held(String run, String holder) {}
    }

    /**
     * Makes a run with a directory of its own. May take as long as reading the data does.
     *
     * @param submission as the application's client wrote it
     * @throws RunRefusedException with everything that is wrong
     */
    ClusterRun make(String submission);

    /**
     * Opens all runs that have begun and not ended and that nobody keeps: those of a seed that
     * died. One that cannot be opened is logged. May take as long as reading the data does.
     *
     * @param names of the runs that are looked for
     * @param finder told of each as soon as something is known
     * @return by their names those that somebody keeps, or whose lock is not free yet: look again;
     *     each with the processes where its ranks are, by its journal
     */
    Map<String, Set<String>> unfinished(Predicate<String> names, Finder finder);
}
