package dev.penstock.runtime.checkpoint;

import dev.penstock.runtime.safetensors.StoredFileException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;

/**
 * The checkpoints of a run that its newest whole one makes superfluous, and what crashes left of
 * others. Sets newer than that are damaged; they stay, as do symbolic links.
 *
 * @param kept the newest whole checkpoint
 * @param superfluous folders that may go
 */
public record OldCheckpoints(Path kept, List<Path> superfluous) {
    /**
     * Looks for them. Reads the newest checkpoint in full: an older one may go only if that is
     * whole.
     *
     * @param root of the checkpoints, to which nobody publishes
     * @param ignored as for {@link CheckpointFolders#latest}
     * @return empty if no checkpoint is whole
     */
    public static Optional<OldCheckpoints> in(Path root, Consumer<String> ignored) {
        return CheckpointFolders.latest(root, ignored)
                .map(
                        kept ->
                                new OldCheckpoints(
                                        kept.path(),
                                        CheckpointFolders.newestFirst(root).stream()
                                                .filter(folder -> isSuperfluous(folder, kept))
                                                .map(CheckpointFolders.Folder::path)
                                                .toList()));
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
