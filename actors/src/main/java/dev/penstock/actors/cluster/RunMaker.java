package dev.penstock.actors.cluster;

import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.Predicate;

/** Makes runs of what clients submit; implemented by the application, asked on the seed. */
public interface RunMaker {
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
     * @param found told each as soon as it is open
     * @return by their names those that somebody keeps, or whose lock is not free yet: look again;
     *     each with the processes where its ranks are, by its journal
     */
    Map<String, Set<String>> unfinished(Predicate<String> names, Consumer<ClusterRun> found);
}
