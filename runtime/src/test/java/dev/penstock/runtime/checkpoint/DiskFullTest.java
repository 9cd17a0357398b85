package dev.penstock.runtime.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.runtime.disk.SmallDisk;
import dev.penstock.runtime.safetensors.StoredFileException;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** On a real file system that is too small. Mounting one takes root; elsewhere it says so. */
class DiskFullTest {
    @TempDir Path folder;

    @Test
    void tooFewBytesAreRefusedBeforeAnythingIsWritten() throws Exception {
        try (SmallDisk disk = SmallDisk.below(folder, "size=64k")) {
            Path root = disk.path().resolve("run");
            try (TinyRun run = new TinyRun(1);
                    CheckpointDirectory directory = TinyRun.directory(root, 3)) {
                run.save(directory, 100);

                assertThatThrownBy(() -> run.save(directory, 200))
                        .isInstanceOf(StoredFileException.class)
                        .hasMessageMatching(
                                "(?s).*stage-0.safetensors: cannot write the checkpoint:"
                                        + " [0-9,]+ bytes needed, [0-9,]+ free.*");
            }
            expectStep100Only(root);
        }
    }

    @Test
    void aDiskThatRunsFullDuringTheWriteLosesNothingSaved() throws Exception {
        // eight entries: the folder, four of the first set, then the second finds none left
        try (SmallDisk disk = SmallDisk.below(folder, "size=10m,nr_inodes=8")) {
            Path root = disk.path().resolve("run");
            try (TinyRun run = new TinyRun(2);
                    CheckpointDirectory directory = TinyRun.directory(root, 3)) {
                run.save(directory, 100);

                assertThatThrownBy(() -> run.save(directory, 200))
                        .isInstanceOf(StoredFileException.class)
                        .hasMessageContaining("No space left on device");
            }
            expectStep100Only(root);
        }
    }

    private static void expectStep100Only(Path root) {
        assertThat(root.toFile().list()).containsExactly("step-000100");
        List<String> none = List.of();
        assertThat(CheckpointFolders.latest(root, none::add).orElseThrow().step()).isEqualTo(100);
    }
}
