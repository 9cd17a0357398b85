package dev.penstock.runtime.checkpoint;

import dev.penstock.runtime.safetensors.StoredFileException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.stream.Stream;

/**
 * The checkpoints of a run that its newest whole one makes superfluous, and what crashes left of
 * others. Sets newer than that are damaged; they stay, as do symbolic links.
 *
 * @param kept the newest whole checkpoint, and the best one where that is another
 * @param superfluous folders that may go
 */
public record OldCheckpoints(List<Path> kept, List<Path> superfluous) {
    public OldCheckpoints {
        kept = List.copyOf(kept);
        superfluous = List.copyOf(superfluous);
    }

    /**
     * Looks for them. Reads the newest checkpoint in full: an older one may go only if that is
     * whole.
     *
     * @param root of the checkpoints, to which nobody publishes
     * @param losses by which the best one is kept; empty if none is to be kept for that
     * @param ignored as for {@link CheckpointFolders#latest}
     * @return empty if no checkpoint is whole
     */
    public static Optional<OldCheckpoints> in(
            Path root, Map<Long, Double> losses, Consumer<String> ignored) {
        return CheckpointFolders.latest(root, ignored).map(newest -> of(root, losses, newest));
    }

    private static OldCheckpoints of(Path root, Map<Long, Double> losses, SavedCheckpoint newest) {
        List<CheckpointFolders.Folder> folders = CheckpointFolders.newestFirst(root);
        Optional<Path> best =
                Retention.best(
                                folders.stream()
                                        .filter(folder -> folder.state().isEmpty())
                                        .map(CheckpointFolders.Folder::step)
                                        .filter(step -> step <= newest.step())
                                        .toList(),
                                losses)
                        .map(step -> CheckpointFolders.of(root, step));
        return new OldCheckpoints(
                Stream.concat(Stream.of(newest.path()), best.stream()).distinct().toList(),
                folders.stream()
                        .filter(folder -> isSuperfluous(folder, newest))
                        .map(CheckpointFolders.Folder::path)
                        .filter(path -> !best.equals(Optional.of(path)))
                        .toList());
    }

    private static boolean isSuperfluous(CheckpointFolders.Folder folder, SavedCheckpoint kept) {
        return Files.isDirectory(folder.path(), LinkOption.NOFOLLOW_LINKS)
                && !folder.path().equals(kept.path())
                && (folder.step() < kept.step()
                        || (folder.step() == kept.step() && !folder.state().isEmpty()));
    }

    /**
     * Removes them, oldest first.
     *
     * @throws StoredFileException if one cannot be removed
     */
    public void remove() {
        for (Path folder : superfluous.reversed()) {
            try {
                CheckpointDirectory.removeWhole(folder);
            } catch (IOException e) {
                throw StoredFileException.of(folder, "remove the checkpoint", e);
            }
        }
    }
}
