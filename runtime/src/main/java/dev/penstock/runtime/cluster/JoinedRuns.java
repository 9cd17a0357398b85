package dev.penstock.runtime.cluster;

import dev.penstock.actors.cluster.HostedRun;
import dev.penstock.actors.cluster.RunJoiner;
import dev.penstock.actors.cluster.RunRefusedException;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.config.run.ExposedDataPlane;
import dev.penstock.runtime.config.run.LoadedConfig;
import dev.penstock.runtime.launch.NodeInterface;
import dev.penstock.runtime.launch.RunAssembly;
import dev.penstock.runtime.launch.RunOptions;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;

/**
 * Builds a node's share of a run from the run's directory, which this machine must see under the
 * same path as the seed does, and write to.
 *
 * @param here where this node takes tensors of other hosts
 * @param secured whether it may listen elsewhere if the run says so
 * @param spared whether this node may end when a rank's device is lost: it keeps no runs
 */
record JoinedRuns(NodeInterface here, boolean secured, boolean spared) implements RunJoiner {
    /** A network file system may show a new directory late. */
    private static final Duration PATIENCE = Duration.ofSeconds(5);

    private static final Duration PAUSE = Duration.ofMillis(100);

    @Override
    public HostedRun join(Path directory, String runId) {
        if (serves(directory)) {
            return served(directory, runId);
        }
        RunOptions options = options(directory, runId);
        requireWritable(directory);
        try {
            LoadedConfig loaded =
                    ConfigLoader.loadOfRun(directory.resolve(RunAssembly.LAUNCH_CONFIG), List.of());
            ExposedDataPlane.ofClusterRun(loaded, secured)
                    .ifPresent(
                            problem -> {
                                throw new ConfigException(List.of(problem));
                            });
            return new JoinedRun(RunAssembly.of(loaded, options), here, spared);
        } catch (ConfigException e) {
            throw new RunRefusedException(
                    e.problems().stream().map(Problem::toString).collect(Collectors.joining("; ")),
                    e);
        }
    }

    /** Whether a model is served there, once anything is to be seen of the directory. */
    private static boolean serves(Path directory) {
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        while (!ServingParts.areIn(directory)
                && !RunOptions.areIn(directory)
                && System.nanoTime() < deadline) {
            LockSupport.parkNanos(PAUSE.toNanos());
        }
        return ServingParts.areIn(directory);
    }

    private HostedRun served(Path directory, String runId) {
        ServingParts parts = ServingParts.read(directory);
        if (!parts.plan().runId().equals(runId)) {
            parts.close();
            throw new RunRefusedException(
                    "expected %s in %s, got %s; all nodes must see the seed's cluster.runs under the same path, for example over NFS"
                            .formatted(runId, directory, parts.plan().runId()));
        }
        return new ServingShare(parts, here);
    }

    /** The directory is the one that the seed means if it says so itself. */
    private static RunOptions options(Path directory, String runId) {
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        String found = "nothing";
        while (System.nanoTime() < deadline) {
            try {
                RunOptions options = RunOptions.read(directory);
                if (options.runId().equals(runId)) {
                    return options;
                }
                found = "run " + options.runId();
            } catch (UncheckedIOException e) {
                found = Files.isDirectory(directory) ? "a directory without it" : "nothing";
            }
            LockSupport.parkNanos(PAUSE.toNanos());
        }
        throw new RunRefusedException(
                "expected run %s in %s, got %s; all nodes must see the seed's cluster.runs under the same path, for example over NFS"
                        .formatted(runId, directory, found));
    }

    private static void requireWritable(Path directory) {
        try {
            Files.delete(Files.createTempFile(directory, "node-", ".marker"));
        } catch (IOException e) {
            throw new RunRefusedException(
                    "expected to write its checkpoints into %s, but: %s"
                            .formatted(directory, e.getMessage()),
                    e);
        }
    }
}
