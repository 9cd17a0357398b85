package dev.penstock.runtime.metrics;

import dev.penstock.runtime.checkpoint.DurableFiles;
import dev.penstock.runtime.config.reading.FileCause;
import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Comparator;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * The directory of everything about one run.
 *
 * @param path the directory, absolute
 */
public record RunDirectory(Path path) {
    private static final Pattern UNSAFE = Pattern.compile("[^A-Za-z0-9._-]+");
    private static final int LONGEST_NAME = 80;

    public RunDirectory {
        path = path.toAbsolutePath().normalize();
    }

    /**
     * Creates {@code runs/NAME-N} with the first N after the existing ones. Characters of the name
     * that do not belong in a file name become dashes.
     *
     * @throws RunDirectoryException if it cannot be created
     */
    public static RunDirectory createUnder(Path runs, String name) {
        String safe = safeName(name);
        try {
            Files.createDirectories(runs);
            int number = numberOfLatest(runs, safe).orElse(0) + 1;
            while (true) {
                try {
                    Path made = make(runs.resolve(safe + "-" + number));
                    return new RunDirectory(made).prepared();
                } catch (FileAlreadyExistsException e) {
                    number++; // another run was started at the same time
                }
            }
        } catch (IOException e) {
            throw cannotCreate(runs, e);
        }
    }

    /**
     * Creates a run directory at a place that the user chose; it may exist, but not hold a run.
     *
     * @throws RunDirectoryException if it holds a run or cannot be created
     */
    public static RunDirectory create(Path path) {
        RunDirectory directory = new RunDirectory(path);
        if (directory.holdsRun()) {
            throw new RunDirectoryException(
                    directory.path,
                    "cannot start a run: %s already holds a run; try --resume to continue it, or another --run-dir"
                            .formatted(directory.path));
        }
        try {
            if (!Files.exists(directory.path)) {
                Files.createDirectories(DurableFiles.folderOf(directory.path));
                var _ = make(directory.path);
            }
            return directory.prepared();
        } catch (IOException e) {
            throw cannotCreate(directory.path, e);
        }
    }

    /**
     * Makes a directory that still exists after a power cut, and in which other users read nothing:
     * configurations may hold secrets, and weights are made of data. One that the user made keeps
     * the permissions that it has.
     */
    private static Path make(Path path) throws IOException {
        boolean posix = path.getFileSystem().supportedFileAttributeViews().contains("posix");
        if (posix) {
            Files.createDirectory(
                    path,
                    PosixFilePermissions.asFileAttribute(
                            PosixFilePermissions.fromString("rwx------")));
        } else {
            Files.createDirectory(path);
        }
        DurableFiles.syncFolder(DurableFiles.folderOf(path));
        return path;
    }

    /**
     * Opens the directory of an earlier run.
     *
     * @throws RunDirectoryException if there is none
     */
    public static RunDirectory open(Path path) {
        RunDirectory directory = new RunDirectory(path);
        if (!directory.holdsRun()) {
            throw new RunDirectoryException(
                    directory.path,
                    "cannot open a run: expected a run directory with %s, but %s; try the directory that the run printed when it ended"
                            .formatted(
                                    directory.resolvedConfiguration().getFileName(),
                                    Files.isDirectory(directory.path)
                                            ? directory.path + " has none"
                                            : directory.path + " does not exist"));
        }
        try {
            return directory.prepared();
        } catch (IOException e) {
            throw cannotCreate(directory.path, e);
        }
    }

    /** Returns the newest run of this name under {@code runs}, if any. */
    public static Optional<RunDirectory> latestUnder(Path runs, String name) {
        String safe = safeName(name);
        try {
            OptionalInt number = numberOfLatest(runs, safe);
            return number.isEmpty()
                    ? Optional.empty()
                    : Optional.of(new RunDirectory(runs.resolve(safe + "-" + number.getAsInt())));
        } catch (IOException e) {
            throw new RunDirectoryException(
                    runs, "cannot look for runs in %s: %s".formatted(runs, FileCause.of(e)), e);
        }
    }

    /**
     * Takes this directory for one run until closed, or until this process ends, however it ends.
     *
     * @throws RunDirectoryException if another run has it
     */
    public RunLock lock() {
        try {
            Optional<RunLock> taken = RunLock.take(path);
            if (taken.isPresent()) {
                return taken.get();
            }
            throw new RunDirectoryException(
                    path,
                    "run directory %s is in use by another run%s; try another --run-dir or wait for it to end"
                            .formatted(path, RunLock.holderOf(path)));
        } catch (IOException e) {
            throw new RunDirectoryException(
                    path,
                    "cannot lock the run directory %s: %s".formatted(path, FileCause.of(e)),
                    e);
        }
    }

    /** The process that took this directory for a run and has not given it back, or has died. */
    public OptionalLong keeper() {
        try {
            return RunLock.pidOfHolder(path);
        } catch (IOException e) {
            throw new RunDirectoryException(
                    path, "cannot read who has %s: %s".formatted(path, FileCause.of(e)), e);
        }
    }

    /**
     * Words about the process that took this directory for a run, with a space before them; empty
     * if nobody has it.
     */
    public String holder() {
        try {
            return RunLock.holderOf(path);
        } catch (IOException e) {
            throw new RunDirectoryException(
                    path, "cannot read who has %s: %s".formatted(path, FileCause.of(e)), e);
        }
    }

    /**
     * The process that trains here now. It is only looked at: nothing is written, and nobody has to
     * wait; whoever wants to change something takes the {@link #lock}.
     */
    public Optional<RunKeeper> livingKeeper() {
        try {
            return RunLock.living(path);
        } catch (IOException e) {
            throw new RunDirectoryException(
                    path, "cannot read who has %s: %s".formatted(path, FileCause.of(e)), e);
        }
    }

    /** Removes a directory that was created for a run that never began. */
    public void removeIfEmpty() {
        try {
            Files.deleteIfExists(checkpoints());
            RunLock.deleteFiles(path);
            Files.delete(path);
        } catch (IOException e) {
            // it holds something, or it stays empty: no harm in either
        }
    }

    /** Returns the file of the configuration as it was used: defaults and overrides filled in. */
    public Path resolvedConfiguration() {
        return path.resolve("resolved.conf");
    }

    /** Returns the file with the fingerprint of the tokenizer, wherever its files are. */
    public Path tokenizer() {
        return path.resolve("tokenizer.sha256");
    }

    /**
     * Returns the folder with copies of a tokenizer's files, where a run was made of weights that
     * had them: it has no configuration to say which is its own.
     */
    public Path tokenizerFiles() {
        return path.resolve("tokenizer");
    }

    /** Returns the file of metrics: one JSON object per line, see {@code docs/metrics.md}. */
    public Path metrics() {
        return path.resolve("metrics.jsonl");
    }

    /** Returns the file of the newest {@link CommittedStep}, where its state outlives a process. */
    public Path committedStep() {
        return path.resolve("committed.txt");
    }

    /** Returns the log of events, one per line: see {@code docs/dashboard.md}. */
    public Path events() {
        return path.resolve("events.jsonl");
    }

    /** Returns the file of op times of a few steps, for chrome://tracing and ui.perfetto.dev. */
    public Path trace() {
        return path.resolve("trace.json");
    }

    /** Returns the picture of a measured step next to the simulated one. */
    public Path gantt() {
        return path.resolve("gantt.svg");
    }

    /** Returns the file of op costs, for {@code penstock schedule simulate --profile}. */
    public Path profile() {
        return path.resolve("profile.txt");
    }

    public Path lossCurve() {
        return path.resolve("loss.svg");
    }

    /** Returns the result of the run, in one JSON document. */
    public Path summary() {
        return path.resolve("summary.json");
    }

    public Path report() {
        return path.resolve("report.html");
    }

    public Path log() {
        return path.resolve("log.txt");
    }

    public Path checkpoints() {
        return path.resolve("checkpoints");
    }

    /** Returns whether a run was started here. */
    public boolean holdsRun() {
        return Files.exists(resolvedConfiguration()) || Files.exists(metrics());
    }

    /** Returns whether this was created for a run, even if that ended before it began. */
    public boolean wasPrepared() {
        return holdsRun() || Files.isDirectory(checkpoints());
    }

    /**
     * Returns why the directory can neither be written into nor created, with the folder that is in
     * the way; empty if it can.
     */
    public Optional<String> whyNotWritable() {
        Path nearest = path;
        while (!Files.exists(nearest) && nearest.getParent() != null) {
            nearest = nearest.getParent();
        }
        if (!Files.isDirectory(nearest)) {
            return Optional.of(nearest + " is not a folder");
        }
        if (Files.isWritable(nearest)) {
            return Optional.empty();
        }
        return Optional.of(
                isReadOnly(nearest)
                        ? nearest + " is on a read-only file system"
                        : nearest + ": permission denied");
    }

    private static boolean isReadOnly(Path folder) {
        try {
            return Files.getFileStore(folder).isReadOnly();
        } catch (IOException e) {
            return false; // then nobody says so, and permission is what is left
        }
    }

    private RunDirectory prepared() throws IOException {
        Files.createDirectories(checkpoints());
        DurableFiles.syncFolder(path);
        return this;
    }

    private static OptionalInt numberOfLatest(Path runs, String safe) throws IOException {
        if (!Files.isDirectory(runs)) {
            return OptionalInt.empty();
        }
        Pattern numbered = Pattern.compile(Pattern.quote(safe) + "-([1-9][0-9]{0,8})");
        try (Stream<Path> entries = Files.list(runs)) {
            return entries.map(entry -> numbered.matcher(entry.getFileName().toString()))
                    .filter(Matcher::matches)
                    .map(matcher -> Integer.parseInt(matcher.group(1)))
                    .max(Comparator.naturalOrder())
                    .map(OptionalInt::of)
                    .orElse(OptionalInt.empty());
        }
    }

    private static String safeName(String name) {
        String safe = UNSAFE.matcher(name).replaceAll("-").replaceFirst("^[.-]+", "");
        safe = safe.substring(0, Math.min(safe.length(), LONGEST_NAME));
        return safe.isEmpty() ? "run" : safe;
    }

    private static RunDirectoryException cannotCreate(Path path, IOException e) {
        return new RunDirectoryException(
                path,
                "cannot create the run directory %s: %s; try --run-dir with a directory that you can write to"
                        .formatted(path, FileCause.of(e)),
                e);
    }
}
