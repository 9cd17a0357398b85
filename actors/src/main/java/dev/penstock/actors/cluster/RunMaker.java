package dev.penstock.actors.cluster;

/** Makes runs of what clients submit; implemented by the application, asked on the seed. */
@FunctionalInterface
public interface RunMaker {
    /**
     * Makes a run with a directory of its own. May take as long as reading the data does.
     *
     * @param submission as the application's client wrote it
     * @throws RunRefusedException with everything that is wrong
     */
    ClusterRun make(String submission);
}
