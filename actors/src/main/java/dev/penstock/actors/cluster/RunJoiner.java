package dev.penstock.actors.cluster;

import java.nio.file.Path;

/** Builds a node's own share of a run; implemented by the application, asked on every node. */
@FunctionalInterface
public interface RunJoiner {
    /**
     * Builds the run from its directory. May take as long as reading the data does.
     *
     * @param directory of the run, as the seed sees it
     * @param runId which must be the run in that directory
     * @throws RunRefusedException if this node does not see the directory, or cannot build the run
     */
    HostedRun join(Path directory, String runId);
}
