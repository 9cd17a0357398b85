package dev.penstock.runtime.cluster;

import dev.penstock.actors.cluster.ClusterRun;
import dev.penstock.actors.cluster.RunRefusedException;
import dev.penstock.actors.journal.JournalledRun;
import dev.penstock.runtime.launch.RunOptions;
import dev.penstock.runtime.metrics.RunDirectory;
import dev.penstock.runtime.metrics.RunDirectoryException;
import dev.penstock.runtime.metrics.RunLock;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Makes runs that serve of what clients order.
 *
 * @param root where their directories are made, absolute
 * @param clusterId written into each directory: it is this cluster's to take up
 */
record ServingRuns(Path root, String clusterId) {
    /**
     * Makes one.
     *
     * @throws RunRefusedException with what is wrong
     */
    ClusterRun make(String submission) {
        ServeOrder order = ServeOrder.parse(submission);
        ServingParts parts = ServingParts.open(order, RunOptions.newRunId("serving"));
        RunDirectory directory = null;
        RunLock lock = null;
        boolean made = false;
        try {
            var _ = parts.served(); // what it cannot say is said now
            directory = RunDirectory.createUnder(root, "serving-" + order.name());
            lock = directory.lock();
            parts.write(directory.path());
            UnfinishedRuns.mark(directory, clusterId);
            var run = new ServingRun(directory, parts, lock, Optional.empty());
            made = true;
            return run;
        } catch (IOException | RunDirectoryException e) {
            throw new RunRefusedException(
                    "the seed cannot write into %s: %s".formatted(root, e.getMessage()), e);
        } finally {
            if (!made) {
                undo(parts, directory, lock);
            }
        }
    }

    private static void undo(
            ServingParts parts, @Nullable RunDirectory directory, @Nullable RunLock lock) {
        parts.close();
        if (lock != null) {
            lock.close();
        }
        if (directory != null) {
            ServingRun.remove(directory.path());
        }
    }

    /** Opens one that a seed kept which is gone. */
    static ClusterRun opened(RunDirectory directory, RunLock lock, JournalledRun known) {
        return new ServingRun(
                directory, ServingParts.read(directory.path()), lock, Optional.of(known));
    }
}
