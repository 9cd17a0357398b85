package dev.penstock.runtime.cluster;

import dev.penstock.actors.cluster.ClusterRun;
import dev.penstock.actors.cluster.RunMaker;
import dev.penstock.actors.journal.JournalledRun;
import dev.penstock.runtime.checkpoint.CheckpointFolders;
import dev.penstock.runtime.checkpoint.DurableFiles;
import dev.penstock.runtime.config.reading.FileCause;
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
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs of a cluster that began and did not end and whose directory nobody has locked: their seed
 * died.
 *
 * @param root where run directories are
 */
record UnfinishedRuns(Path root, String clusterId) {
    private static final Logger LOG = LoggerFactory.getLogger(UnfinishedRuns.class);

    /** Names the cluster that a run belongs to. */
    private static final String MARK = "cluster.txt";

    /** Local runs may lie in the same place, and runs of other clusters. */
    static void mark(RunDirectory directory, String clusterId) throws IOException {
        DurableFiles.write(directory.path().resolve(MARK), clusterId);
    }

    /**
     * Locks and opens all that can be; one that cannot be opened is logged. It takes a while to see
     * that a holder on another host is gone, so all are tried at once.
     *
     * @param names of the directories that are looked at
     * @param finder told of each as soon as something is known
     * @return by their names those that are locked, with the processes where their ranks are
     */
    Map<String, Set<String>> open(Predicate<String> names, RunMaker.Finder finder) {
        Map<Path, CompletableFuture<Optional<RunLock>>> locks = new LinkedHashMap<>();
        Map<String, Set<String>> locked = new TreeMap<>();
        try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
            for (Path each : mine(names)) {
                locks.put(each, CompletableFuture.supplyAsync(() -> lock(each), threads));
            }
            locks.forEach(
                    (each, lock) ->
                            lock.join()
                                    .ifPresentOrElse(
                                            held -> open(each, held, finder),
                                            () -> {
                                                finder.held(name(each), holder(each));
                                                locked.put(name(each), processes(each));
                                            }));
        }
        return locked;
    }

    private static String holder(Path directory) {
        try {
            return new RunDirectory(directory).holder();
        } catch (RunDirectoryException e) {
            return ""; // whoever has it gives it back
        }
    }

    /** Read while somebody may write it. */
    private static Set<String> processes(Path directory) {
        return EarlierStarts.in(directory)
                .unfinished()
                .map(run -> Set.copyOf(run.placed().values()))
                .orElse(Set.of());
    }

    private static Optional<RunLock> lock(Path directory) {
        try {
            return Optional.of(new RunDirectory(directory).lock());
        } catch (RunDirectoryException e) {
            return Optional.empty();
        }
    }

    private static void open(Path each, RunLock lock, RunMaker.Finder finder) {
        boolean taken = false;
        finder.opens(name(each));
        try {
            finder.opened(opened(new RunDirectory(each), lock));
            taken = true;
        } catch (RuntimeException | IOException | LinkageError e) {
            LOG.error("run {} has not ended, but cannot be taken up", name(each), e);
            finder.cannotOpen(
                    name(each),
                    e instanceof IOException file
                            ? FileCause.withFile(file)
                            : String.valueOf(e.getMessage()));
        } finally {
            if (!taken) {
                lock.close();
            }
        }
    }

    private static String name(Path directory) {
        return String.valueOf(directory.getFileName());
    }

    private List<Path> mine(Predicate<String> names) {
        if (!Files.isDirectory(root)) {
            return List.of();
        }
        try (Stream<Path> entries = Files.list(root)) {
            return entries.filter(entry -> names.test(name(entry)))
                    .filter(this::isMine)
                    .sorted()
                    .toList();
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

    private static ClusterRun opened(RunDirectory directory, RunLock lock) throws IOException {
        JournalledRun known = known(directory);
        if (ServingParts.areIn(directory.path())) {
            return ServingRuns.opened(directory, lock, known);
        }
        var loaded =
                ConfigLoader.loadOfRun(
                        directory.path().resolve(RunAssembly.LAUNCH_CONFIG), List.of());
        RunAssembly assembly = RunAssembly.of(loaded, RunOptions.read(directory.path()));
        return new SubmittedRun(directory, assembly, lock, known);
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
