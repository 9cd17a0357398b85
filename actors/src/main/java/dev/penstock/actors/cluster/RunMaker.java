package dev.penstock.actors.cluster;

import java.util.function.Consumer;

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
     * died. One that cannot be opened is logged. May take as long as reading the data does, and
     * longer where a directory is still locked.
     *
     * @param found told each as soon as it is open
     */
    void unfinished(Consumer<ClusterRun> found);
}
