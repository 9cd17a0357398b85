package dev.penstock.runtime.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.penstock.runtime.safetensors.StoredFileException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** On a real file system that is too small. Mounting one takes root; elsewhere it says so. */
class DiskFullTest {
    @TempDir Path mountPoint;

    @Test
    void tooFewBytesAreRefusedBeforeAnythingIsWritten() throws Exception {
        withSmallDisk(
                "size=64k",
                () -> {
                    try (TinyRun run = new TinyRun(1);
                            CheckpointDirectory directory =
                                    TinyRun.directory(mountPoint.resolve("run"), 3)) {
                        run.save(directory, 100);

                        assertThatThrownBy(() -> run.save(directory, 200))
                                .isInstanceOf(StoredFileException.class)
                                .hasMessageMatching(
                                        "(?s).*stage-0.safetensors: cannot write the checkpoint:"
                                                + " [0-9,]+ bytes needed, [0-9,]+ free.*");
                    }
                    expectStep100Only();
                });
    }

    @Test
    void aDiskThatRunsFullDuringTheWriteLosesNothingSaved() throws Exception {
        // eight entries: the folder, four of the first set, then the second finds none left
        withSmallDisk(
                "size=10m,nr_inodes=8",
                () -> {
                    try (TinyRun run = new TinyRun(2);
                            CheckpointDirectory directory =
                                    TinyRun.directory(mountPoint.resolve("run"), 3)) {
                        run.save(directory, 100);

                        assertThatThrownBy(() -> run.save(directory, 200))
                                .isInstanceOf(StoredFileException.class)
                                .hasMessageContaining("No space left on device");
                    }
                    expectStep100Only();
                });
    }

    private void expectStep100Only() {
        Path root = mountPoint.resolve("run");
        assertThat(root.toFile().list()).containsExactly("step-000100");
        List<String> none = List.of();
        assertThat(CheckpointFolders.latest(root, none::add).orElseThrow().step()).isEqualTo(100);
    }

    private void withSmallDisk(String options, Runnable test) throws Exception {
        boolean mounted =
                run("mount", "-t", "tmpfs", "-o", options, "tmpfs", mountPoint.toString());
        assumeTrue(mounted, "skipped: mounting a small tmpfs needs root on Linux");
        try {
            test.run();
        } finally {
            assertThat(run("umount", mountPoint.toString())).isTrue();
            assertThat(Files.exists(mountPoint.resolve("run"))).isFalse();
        }
    }

    private static boolean run(String... command) throws Exception {
        try {
            Process process =
                    new ProcessBuilder(command)
                            .redirectErrorStream(true)
                            .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                            .start();
            return process.waitFor(10, TimeUnit.SECONDS) && process.exitValue() == 0;
        } catch (IOException e) {
            return false; // no such program here
        }
    }
}
