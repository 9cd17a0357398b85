package dev.penstock.runtime.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.runtime.safetensors.StoredFileException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A checkpoint is read while its run saves newer ones and lets go of it. */
class HeldCheckpointTest {
    @TempDir Path root;

    private final TinyRun run = new TinyRun(2);

    @AfterEach
    void freeTheModel() {
        run.close();
    }

    @Test
    void whatIsHeldOutlivesTheCheckpointAndLeavesNothing() throws IOException {
        save(100);
        try (HeldCheckpoint held = HeldCheckpoint.of(newest())) {
            save(200);

            assertThat(root.resolve("step-000100")).doesNotExist();
            SavedCheckpoint read = SavedCheckpoint.open(held.path());
            assertThat(read.verify()).isEmpty();
            assertThat(read.step()).isEqualTo(100);
            assertThat(newest().step()).isEqualTo(200);
        }
        assertThat(namesInRoot()).containsExactly("step-000200");
    }

    /** Otherwise a file of it could be missing when it is read. */
    @Test
    void whatIsGoneCannotBeHeld() throws IOException {
        save(100);
        SavedCheckpoint gone = newest();
        save(200);

        assertThatThrownBy(() -> HeldCheckpoint.of(gone))
                .isInstanceOf(StoredFileException.class)
                .hasMessageContaining("step-000100")
                .hasMessageContaining("try again");
        assertThat(namesInRoot()).containsExactly("step-000200");
    }

    @Test
    void theNextStartRemovesWhatAKilledReaderHeld() throws IOException {
        save(100);
        HeldCheckpoint left = HeldCheckpoint.of(newest());
        assertThat(left.path()).exists();

        try (CheckpointDirectory directory = TinyRun.directory(root, 1)) {
            directory.sweep();
        }

        assertThat(namesInRoot()).containsExactly("step-000100");
    }

    private void save(long step) {
        try (CheckpointDirectory directory = TinyRun.directory(root, 1)) {
            run.save(directory, step);
        }
    }

    private SavedCheckpoint newest() {
        return CheckpointFolders.latest(root, _ -> {}).orElseThrow();
    }

    private List<String> namesInRoot() throws IOException {
        try (Stream<Path> files = Files.list(root)) {
            return files.map(file -> file.getFileName().toString()).toList();
        }
    }
}
