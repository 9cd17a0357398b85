package dev.penstock.runtime.runs;

import dev.penstock.runtime.checkpoint.CheckpointFolders;
import dev.penstock.runtime.checkpoint.DurableFiles;
import dev.penstock.runtime.checkpoint.OldCheckpoints;
import dev.penstock.runtime.metrics.MetricsFile;
import dev.penstock.runtime.metrics.RunDirectory;
import dev.penstock.runtime.metrics.RunLock;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Consumer;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * Removes files of a run that has ended: checkpoints of which there is a newer whole one, or
 * everything that a run writes. What else lies in its directory stays, and symbolic links are
 * neither followed nor removed. Whoever removes holds the run's lock.
 */
public final class RunRemoval {
    /** Folders that a run has to itself. */
    private static final Set<String> FOLDERS = Set.of("faults", "audit", "key");

    private static final Set<String> FILES =
            Set.of(
                    "resolved.conf",
                    "launch.conf",
                    "launch.properties",
                    "submitted.conf",
                    "cluster.txt",
                    "tokenizer.sha256",
                    "token-source.txt",
                    "journal.txt",
                    "lost-gpus.txt",
                    "metrics.jsonl",
                    "events.jsonl",
                    "trace.json",
                    "profile.txt",
                    "gantt.svg",
                    "loss.svg",
                    "summary.json",
                    "report.html",
                    "log.txt");

    /** What processes of ranks print, and orders that a cluster was sent. */
    private static final Pattern NUMBERED =
            Pattern.compile("(rank|spare)-\\d+(-start-\\d+)?\\.out|order-.+");

    private static final Pattern CHECKPOINT = Pattern.compile("step-\\d{6,18}(\\..+)?|held-.+");

    private RunRemoval() {}

    /**
     * What is to go.
     *
     * @param run its directory
     * @param goes files and folders, in the order in which they go
     * @param bytes that become free
     * @param stays names of what is kept on purpose
     */
    public record Plan(Path run, List<Path> goes, long bytes, List<String> stays) {}

    /**
     * The checkpoints that have a newer whole one.
     *
     * @param ignored receives a line for every newer set that is damaged
     * @return empty if no checkpoint is whole: then all stay
     * @throws IOException if they cannot be read
     */
    public static Optional<Plan> checkpoints(RunDirectory run, Consumer<String> ignored)
            throws IOException {
        Optional<OldCheckpoints> old = old(run, ignored);
        return old.isEmpty() ? Optional.empty() : Optional.of(plan(run, old.get()));
    }

    private static Optional<OldCheckpoints> old(RunDirectory run, Consumer<String> ignored)
            throws IOException {
        Path root = run.checkpoints();
        return isFolder(root)
                ? OldCheckpoints.in(
                        root,
                        LocalRuns.keepsBest(run)
                                ? MetricsFile.validationLosses(run.metrics())
                                : Map.of(),
                        ignored)
                : Optional.empty();
    }

    private static Plan plan(RunDirectory run, OldCheckpoints old) throws IOException {
        return plan(
                run,
                old.superfluous(),
                old.kept().stream().map(path -> String.valueOf(path.getFileName())).toList());
    }

    /**
     * Everything that the run wrote.
     *
     * @throws IOException if its directory cannot be read
     */
    public static Plan everything(RunDirectory run) throws IOException {
        List<Path> goes = new ArrayList<>();
        List<String> stays = new ArrayList<>();
        for (Path entry : entries(run.path())) {
            String name = entry.getFileName().toString();
            if (name.equals(CheckpointFolders.FOLDER) && isFolder(entry)) {
                for (Path checkpoint : entries(entry)) {
                    String step = checkpoint.getFileName().toString();
                    if (isFolder(checkpoint) && CHECKPOINT.matcher(step).matches()) {
                        goes.add(checkpoint);
                    } else {
                        stays.add(name + "/" + step);
                    }
                }
            } else if (isOfRun(entry, name)) {
                goes.add(entry);
            } else if (!RunLock.isFileOf(name)) {
                stays.add(name);
            }
        }
        Path last =
                run.resolvedConfiguration(); // as long as it is there, this is a run's directory
        if (goes.remove(last)) {
            goes.add(last);
        }
        return plan(run, goes, stays);
    }

    private static boolean isOfRun(Path entry, String name) {
        return isFolder(entry)
                ? FOLDERS.contains(name)
                : Files.isRegularFile(entry, LinkOption.NOFOLLOW_LINKS)
                        && (FILES.contains(name) || NUMBERED.matcher(name).matches());
    }

    private static boolean isFolder(Path entry) {
        return Files.isDirectory(entry, LinkOption.NOFOLLOW_LINKS);
    }

    private static List<Path> entries(Path folder) throws IOException {
        try (Stream<Path> entries = Files.list(folder)) {
            return entries.sorted().toList();
        }
    }

    private static Plan plan(RunDirectory run, List<Path> goes, List<String> stays)
            throws IOException {
        long bytes = 0;
        for (Path path : goes) {
            bytes += LocalRuns.bytes(path);
        }
        return new Plan(run.path(), goes, bytes, stays);
    }

    /**
     * Removes what {@link #checkpoints} finds now.
     *
     * @return what went; empty if no checkpoint is whole
     * @throws dev.penstock.runtime.metrics.RunDirectoryException if somebody has the run
     * @throws IOException if something cannot be read
     */
    public static Optional<Plan> removeCheckpoints(RunDirectory run, Consumer<String> ignored)
            throws IOException {
        try (RunLock _ = run.lock()) {
            Optional<OldCheckpoints> old = old(run, ignored);
            if (old.isEmpty()) {
                return Optional.empty();
            }
            Plan plan = plan(run, old.get());
            old.get().remove();
            return Optional.of(plan);
        }
    }

    /**
     * Removes what {@link #everything} finds now, and the directory if that is all that was in it.
     *
     * @return what went
     * @throws dev.penstock.runtime.metrics.RunDirectoryException if somebody has the run
     * @throws IOException if something cannot be read or removed
     */
    public static Plan removeEverything(RunDirectory run) throws IOException {
        Plan plan;
        try (RunLock _ = run.lock()) {
            plan = everything(run);
            for (Path path : plan.goes()) {
                DurableFiles.delete(path);
            }
        }
        if (plan.stays().isEmpty()) {
            run.removeIfEmpty();
        }
        return plan;
    }
}
