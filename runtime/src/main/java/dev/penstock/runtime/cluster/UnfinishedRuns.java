package dev.penstock.runtime.cluster;

import dev.penstock.actors.cluster.ClusterRun;
import dev.penstock.actors.journal.JournalledRun;
import dev.penstock.runtime.checkpoint.CheckpointFolders;
import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.launch.EarlierStarts;
import dev.penstock.runtime.launch.RunAssembly;
import dev.penstock.runtime.launch.RunOptions;
import dev.penstock.runtime.metrics.RunDirectory;
import dev.penstock.runtime.metrics.RunDirectoryException;
import dev.penstock.runtime.metrics.RunLock;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs of a cluster that began and did not end and whose directory nobody has locked: their seed
 * died.
 *
 * @param root where run directories are
 * @param patience for directories that are still locked
 */
record UnfinishedRuns(Path root, String clusterId, Duration patience) {
    private static final Logger LOG = LoggerFactory.getLogger(UnfinishedRuns.class);

    private static final Duration PAUSE = Duration.ofMillis(250);

    /** Names the cluster that a run belongs to. */
    private static final String MARK = "cluster.txt";

    /** Local runs may lie in the same place, and runs of other clusters. */
    static void mark(RunDirectory directory, String clusterId) throws IOException {
        Files.writeString(directory.path().resolve(MARK), clusterId);
    }

    /**
     * Locks and opens all that can be; the others are logged.
     *
     * @param found told each
     */
    void open(Consumer<ClusterRun> found) {
        long deadline = System.nanoTime() + patience.toNanos();
        List<Path> locked = mine();
        while (true) {
            locked = locked.stream().filter(each -> !open(each, found)).toList();
            if (locked.isEmpty()) {
                return;
            }
            if (System.nanoTime() - deadline > 0) {
                LOG.info("{}: somebody keeps them", locked);
                return;
            }
            LockSupport.parkNanos(PAUSE.toNanos());
        }
    }

    /** Whether nothing more is to be done about it; false while it is locked. */
    private static boolean open(Path each, Consumer<ClusterRun> found) {
        try {
            var directory = new RunDirectory(each);
            RunLock lock;
            try {
                lock = directory.lock();
            } catch (RunDirectoryException e) {
                return false;
            }
            found.accept(open(directory, lock));
        } catch (RuntimeException | IOException e) {
            LOG.error("run {} has not ended, but cannot be taken up", each.getFileName(), e);
        }
        return true;
    }

    private List<Path> mine() {
        if (!Files.isDirectory(root)) {
            return List.of();
        }
        try (Stream<Path> entries = Files.list(root)) {
            return entries.filter(this::isMine).sorted().toList();
        } catch (IOException e) {
            LOG.error("runs that have not ended cannot be looked for in {}", root, e);
            return List.of();
        }
    }

    private boolean isMine(Path directory) {
        try {
            Path mark = directory.resolve(MARK);
            return Files.exists(mark)
                    && Files.readString(mark).equals(clusterId)
                    && EarlierStarts.in(directory).unfinished().isPresent();
        } catch (IOException e) {
            LOG.warn("{} cannot be read", directory, e);
            return false;
        }
    }

    private static ClusterRun open(RunDirectory directory, RunLock lock) throws IOException {
        try {
            var loaded =
                    ConfigLoader.loadWithOrigins(
                            directory.path().resolve(RunAssembly.LAUNCH_CONFIG), List.of());
            RunAssembly assembly = RunAssembly.of(loaded, RunOptions.read(directory.path()));
            return new SubmittedRun(directory, assembly, lock, known(directory));
        } catch (RuntimeException e) {
            lock.close();
            throw e;
        }
    }

    /** Read behind the lock: nobody writes it any more. */
    private static JournalledRun known(RunDirectory directory) {
        JournalledRun journalled =
                EarlierStarts.in(directory.path())
                        .unfinished()
                        .orElseThrow(
                                () -> new IllegalStateException("it has ended in the meantime"));
        return journalled.withPublished(
                CheckpointFolders.newestComplete(directory.path()).orElse(JournalledRun.NONE));
    }
}
