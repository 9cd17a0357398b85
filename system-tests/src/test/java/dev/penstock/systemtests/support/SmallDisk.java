package dev.penstock.systemtests.support;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;

/**
 * A file system that is soon full, where the machine lets one mount it.
 *
 * @param path where it is
 */
public record SmallDisk(Path path) implements AutoCloseable {

    /**
     * Mounts it below a folder; skips the test, and says so, where that is not allowed.
     *
     * @param size as mount has it, such as {@code 300k}
     */
    public static SmallDisk below(Path folder, String size) throws Exception {
        Path disk = Files.createDirectory(folder.resolve("disk"));
        assumeTrue(
                succeeds("mount", "-t", "tmpfs", "-o", "size=" + size, "tmpfs", disk.toString()),
                "skipped: mounting a small tmpfs needs root on Linux");
        return new SmallDisk(disk);
    }

    @Override
    public void close() throws InterruptedException {
        assertThat(succeeds("umount", path.toString())).isTrue();
    }

    private static boolean succeeds(String... command) throws InterruptedException {
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
