package dev.penstock.runtime.checkpoint;

import dev.penstock.runtime.safetensors.StoredFileException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.function.Consumer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * The checkpoints of a run, read-only: folders named {@code step-000100}. Next to them there may be
 * sets that a crash left behind: never finished ({@code step-000100.epoch-3.incomplete}: ranks that
 * were replaced and still write are in an epoch of their own), half removed ({@code .removed}), or
 * about to be replaced by a newer set of the same step ({@code .replaced}).
 */
public final class CheckpointFolders {
    /** The name of the folder of checkpoints in a run's folder. */
    public static final String FOLDER = "checkpoints";

    static final String INCOMPLETE = ".incomplete";
    static final String REMOVED = ".removed";
    static final String REPLACED = ".replaced";
    private static final Pattern NAME =
            Pattern.compile(
                    "step-(\\d{6,18})(?:\\.epoch-\\d+)?(\\.incomplete|\\.removed|\\.replaced)?");

    private CheckpointFolders() {}

    /**
     * A folder of the layout.
     *
     * @param state empty for a checkpoint, otherwise one of the endings
     */
    record Folder(Path path, long step, String state) {}

    /** Returns the folder of a step's checkpoint. */
    public static Path of(Path root, long step) {
        return root.resolve("step-%06d".formatted(step));
    }

    /**
     * Returns the step of a folder of the layout, whether the folder exists or not; empty for
     * another name.
     */
    public static OptionalLong stepOf(Path folder) {
        Matcher name = NAME.matcher(folder.getFileName().toString());
        return name.matches()
                ? OptionalLong.of(Long.parseLong(name.group(1)))
                : OptionalLong.empty();
    }

    /** What is written of a step's checkpoint in an epoch, until it is complete. */
    static Path incomplete(Path root, long step, int epoch) {
        return root.resolve("step-%06d.epoch-%d%s".formatted(step, epoch, INCOMPLETE));
    }

    static Path of(Path root, long step, String state) {
        return root.resolve("step-%06d%s".formatted(step, state));
    }

    /**
     * Finds the newest checkpoint all of whose files have the hashes of its manifest. Reads it in
     * full.
     *
     * @param root of the checkpoints; need not exist
     * @param ignored receives a line for every set that is skipped, naming the file at fault
     */
    public static Optional<SavedCheckpoint> latest(Path root, Consumer<String> ignored) {
        for (Folder folder : newestFirst(root)) {
            if (folder.state().equals(REMOVED)) {
                continue;
            }
            if (folder.state().equals(INCOMPLETE)) {
                ignored.accept(folder.path() + ": ignored, because it was never finished");
                continue;
            }
            try {
                SavedCheckpoint checkpoint = SavedCheckpoint.open(folder.path());
                List<StoredFileException> problems = checkpoint.verify();
                if (problems.isEmpty()) {
                    return Optional.of(checkpoint);
                }
                problems.forEach(problem -> ignored.accept(passedOver(problem)));
            } catch (StoredFileException e) {
                ignored.accept(passedOver(e));
            }
        }
        return Optional.empty();
    }

    /**
     * Finds the newest checkpoint of an earlier step that has a manifest and all files which that
     * names, of the right size. Their hashes are looked at by whoever reads them.
     *
     * @return its step; empty if there is none
     */
    static OptionalLong newestBefore(Path root, long step) {
        return newestFirst(root).stream()
                .filter(folder -> folder.state().isEmpty() && folder.step() < step)
                .filter(folder -> isComplete(folder.path()))
                .mapToLong(Folder::step)
                .findFirst();
    }

    private static boolean isComplete(Path folder) {
        try {
            return SavedCheckpoint.open(folder).hasAllFiles();
        } catch (StoredFileException e) {
            return false;
        }
    }

    /**
     * Finds the checkpoint to which a run's ranks may go back, as {@link #newestBefore} does, after
     * a crash that may have come between the two renames that replace one.
     *
     * @param run folder of the run, to which nobody publishes
     */
    public static OptionalLong newestComplete(Path run) {
        Path root = run.resolve(FOLDER);
        restoreReplaced(root);
        return newestBefore(root, Long.MAX_VALUE);
    }

    /** The old set gets its name back where the new one did not get it. */
    static void restoreReplaced(Path root) {
        for (Folder folder : newestFirst(root)) {
            Path name = of(root, folder.step());
            if (folder.state().equals(REPLACED) && !Files.exists(name)) {
                try {
                    DurableFiles.move(folder.path(), name);
                } catch (IOException e) {
                    throw StoredFileException.of(folder.path(), "rename the checkpoint", e);
                }
            }
        }
    }

    /**
     * Finds the checkpoint from which a run continues: its newest whole one. One that a crash left
     * under the name of a set that is being replaced has its own name back first, for the ranks
     * read it later.
     *
     * @param run folder of the run, to which nobody publishes
     * @param ignored as for {@link #latest}
     * @return empty if the run ended before it had saved any
     * @throws StoredFileException if there are checkpoints and none is whole, with what is wrong
     *     with each, which {@code ignored} does not receive then
     */
    public static Optional<SavedCheckpoint> newestOf(Path run, Consumer<String> ignored) {
        Path root = run.resolve(FOLDER);
        restoreReplaced(root);
        List<String> passedOver = new ArrayList<>();
        Optional<SavedCheckpoint> newest = latest(root, passedOver::add);
        boolean saved =
                newestFirst(root).stream()
                        .map(Folder::state)
                        .anyMatch(state -> state.isEmpty() || state.equals(REPLACED));
        if (newest.isEmpty() && saved) {
            throw noneUsable(root, ", or train from the beginning without --resume", passedOver);
        }
        passedOver.forEach(ignored);
        return newest;
    }

    /**
     * Finds the checkpoint to which a path refers: that checkpoint itself, or the newest whole one
     * of a run's folder or a folder of checkpoints. Reads it in full.
     *
     * @param ignored as for {@link #latest}
     * @throws StoredFileException if there is none, or the named one is damaged; if there are some
     *     and none is whole, with what is wrong with each, which {@code ignored} does not receive
     *     then
     */
    public static SavedCheckpoint find(Path path, Consumer<String> ignored) {
        if (Files.exists(path.resolve(Manifest.FILE))) {
            SavedCheckpoint named = SavedCheckpoint.open(path);
            List<StoredFileException> problems = named.verify();
            if (problems.size() > 1) {
                throw new StoredFileException(
                        path,
                        "damaged:" + lines(problems.stream().map(Throwable::getMessage).toList()));
            }
            if (!problems.isEmpty()) {
                throw problems.getFirst();
            }
            return named;
        }
        Path inRun = path.resolve(FOLDER);
        Path root = Files.isDirectory(inRun) ? inRun : path;
        List<String> passedOver = new ArrayList<>();
        Optional<SavedCheckpoint> newest = latest(root, passedOver::add);
        if (newest.isEmpty() && !passedOver.isEmpty()) {
            throw noneUsable(root, "", passedOver);
        }
        passedOver.forEach(ignored);
        return newest.orElseThrow(
                () ->
                        new StoredFileException(
                                path,
                                "no checkpoint here; expected a run's folder, its "
                                        + FOLDER
                                        + " or one of them, such as step-000100"));
    }

    private static StoredFileException noneUsable(
            Path root, String otherwise, List<String> passedOver) {
        return new StoredFileException(
                root,
                "none of the checkpoints here is usable; restore one from a copy%s:%s"
                        .formatted(otherwise, lines(passedOver)));
    }

    private static String lines(List<String> problems) {
        return "\n  " + String.join("\n  ", problems);
    }

    private static String passedOver(StoredFileException problem) {
        return problem.getMessage() + "; this checkpoint is ignored";
    }

    /** Lists all folders of the layout, newest first; of one step, the finished one comes first. */
    static List<Folder> newestFirst(Path root) {
        List<Folder> folders = new ArrayList<>();
        try (Stream<Path> children = Files.list(root)) {
            for (Path child : children.toList()) {
                Matcher name = NAME.matcher(child.getFileName().toString());
                if (name.matches() && Files.isDirectory(child)) {
                    String state = name.group(2) == null ? "" : name.group(2);
                    folders.add(new Folder(child, Long.parseLong(name.group(1)), state));
                }
            }
        } catch (NoSuchFileException e) {
            return List.of();
        } catch (IOException e) {
            throw StoredFileException.of(root, "list the checkpoints", e);
        }
        folders.sort(
                Comparator.comparingLong(Folder::step).reversed().thenComparing(Folder::state));
        return folders;
    }
}
