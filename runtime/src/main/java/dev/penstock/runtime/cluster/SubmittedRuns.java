package dev.penstock.runtime.cluster;

import dev.penstock.actors.cluster.ClusterRun;
import dev.penstock.actors.cluster.RunMaker;
import dev.penstock.actors.cluster.RunRefusedException;
import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.runtime.checkpoint.CheckpointFolders;
import dev.penstock.runtime.checkpoint.DurableFiles;
import dev.penstock.runtime.checkpoint.SavedCheckpoint;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.config.run.ExposedDataPlane;
import dev.penstock.runtime.config.run.LayoutChanges;
import dev.penstock.runtime.config.run.LoadedConfig;
import dev.penstock.runtime.data.DataException;
import dev.penstock.runtime.launch.RunAssembly;
import dev.penstock.runtime.launch.RunOptions;
import dev.penstock.runtime.launch.RunStart;
import dev.penstock.runtime.metrics.RunDirectory;
import dev.penstock.runtime.metrics.RunDirectoryException;
import dev.penstock.runtime.metrics.RunLock;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.schedules.validate.InvalidScheduleException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Makes runs of submissions on the seed: each gets a directory in which its nodes find all that
 * they build it from.
 *
 * @param root where run directories are made, absolute
 * @param secured whether runs may listen where other machines reach them
 * @param clusterId written into each run's directory: it is this cluster's to take up
 */
record SubmittedRuns(Path root, boolean secured, String clusterId) implements RunMaker {
    private static final Logger LOG = LoggerFactory.getLogger(SubmittedRuns.class);

    /** The configuration while it is looked at. */
    private static final String SUBMITTED = "submitted.conf";

    @Override
    public ClusterRun make(String text) {
        if (ServeOrder.is(text)) {
            return new ServingRuns(root, clusterId).make(text);
        }
        Submission submission = Submission.parse(text);
        RunDirectory directory = directory(submission);
        RunLock lock = null;
        boolean made = false;
        try {
            lock = directory.lock();
            SubmittedRun run = assemble(submission, directory, lock);
            made = true;
            return run;
        } catch (ConfigException e) {
            throw new RunRefusedException(
                    "the seed finds:\n"
                            + e.problems().stream()
                                    .map(Problem::toString)
                                    .collect(Collectors.joining("\n")),
                    e);
        } catch (StoredFileException
                | DataException
                | DataPlaneException
                | InvalidScheduleException
                | RunDirectoryException e) {
            throw new RunRefusedException("the seed finds: " + e.getMessage(), e);
        } catch (IOException e) {
            throw new RunRefusedException(
                    "the seed cannot write into %s: %s".formatted(directory.path(), e.getMessage()),
                    e);
        } finally {
            if (!made) {
                undo(directory, lock, !submission.resume());
            }
        }
    }

    @Override
    public Map<String, Set<String>> unfinished(Predicate<String> names, Finder finder) {
        return new UnfinishedRuns(root, clusterId).open(names, finder);
    }

    private RunDirectory directory(Submission submission) {
        try {
            if (submission.resume()) {
                return RunDirectory.latestUnder(root, submission.name())
                        .orElseThrow(
                                () ->
                                        new RunRefusedException(
                                                "--resume: expected a run named %s below the seed's %s, got none"
                                                        .formatted(submission.name(), root)));
            }
            return RunDirectory.createUnder(root, submission.name());
        } catch (RunDirectoryException e) {
            throw new RunRefusedException("the seed finds: " + e.getMessage(), e);
        }
    }

    private SubmittedRun assemble(Submission submission, RunDirectory directory, RunLock lock)
            throws IOException {
        Path configuration = directory.path().resolve(SUBMITTED);
        Files.writeString(configuration, submission.configuration());
        try {
            return assemble(submission, configuration, directory, lock);
        } finally {
            Files.deleteIfExists(configuration);
        }
    }

    /**
     * What the run is started from is replaced only when all is well: a refused {@code --resume}
     * leaves the run as it was.
     */
    private SubmittedRun assemble(
            Submission submission, Path configuration, RunDirectory directory, RunLock lock)
            throws IOException {
        if (submission.order().isEmpty()) {
            return assemble(submission, configuration, List.of(), directory, lock);
        }
        Path order = unusedName(directory.path(), submission.orderFile());
        Files.writeString(order, submission.order().get());
        boolean accepted = false;
        try {
            SubmittedRun run =
                    assemble(
                            submission,
                            configuration,
                            List.of("schedule.file=" + order),
                            directory,
                            lock);
            accepted = true;
            return run;
        } finally {
            if (!accepted) {
                Files.deleteIfExists(order);
            }
        }
    }

    /** The order that the run had until now keeps its file. */
    private static Path unusedName(Path directory, String name) {
        Path file = directory.resolve("order-" + name);
        for (int start = 2; Files.exists(file); start++) {
            file = directory.resolve("order-%d-%s".formatted(start, name));
        }
        return file;
    }

    private SubmittedRun assemble(
            Submission submission,
            Path configuration,
            List<String> overrides,
            RunDirectory directory,
            RunLock lock)
            throws IOException {
        List<String> all = new ArrayList<>(overrides);
        if (submission.modelOfRun()) {
            all.addAll(model(directory));
        }
        LoadedConfig loaded = ConfigLoader.loadOfRun(configuration, all);
        ExposedDataPlane.ofClusterRun(loaded, secured)
                .ifPresent(
                        problem -> {
                            throw new ConfigException(List.of(problem));
                        });
        RunOptions options = start(submission, directory).in(directory.path(), submission.name());
        RunAssembly assembly = RunAssembly.of(loaded, options);
        assembly.writeForStageProcesses();
        DurableFiles.write(directory.resolvedConfiguration(), assembly.config().resolved());
        assembly.sweepCheckpoints();
        UnfinishedRuns.mark(directory, clusterId);
        return new SubmittedRun(directory, assembly, lock);
    }

    /** The model that the run had until now, whose folder need not be there any more. */
    private static List<String> model(RunDirectory directory) {
        return LayoutChanges.modelOf(directory.resolvedConfiguration())
                .orElseThrow(
                        () ->
                                new RunRefusedException(
                                        "the seed finds: model.from: nothing is there, and %s does not say the model of the run"
                                                .formatted(directory.resolvedConfiguration())));
    }

    private static RunStart start(Submission submission, RunDirectory directory) {
        Optional<Path> newest =
                submission.resume()
                        ? CheckpointFolders.newestOf(directory.path(), LOG::warn)
                                .map(SavedCheckpoint::path)
                        : Optional.empty();
        return new RunStart(
                newest,
                newest.isPresent() ? Optional.empty() : submission.init(),
                Optional.empty(),
                false);
    }

    /** A run that never began leaves nothing. */
    private static void undo(RunDirectory directory, @Nullable RunLock lock, boolean fresh) {
        try {
            if (lock != null) {
                lock.close();
            }
            if (fresh) {
                try (Stream<Path> files = Files.walk(directory.path())) {
                    for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                        Files.delete(file);
                    }
                }
            }
        } catch (IOException e) {
            LOG.warn("{} stays, though its run was refused", directory.path(), e);
        }
    }
}
