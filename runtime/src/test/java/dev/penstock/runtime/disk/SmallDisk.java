package dev.penstock.runtime.disk;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;

/**
 * A file system that fills up quickly, on machines that let this user mount one.
 *
 * @param path where it is mounted
 */
public record SmallDisk(Path path) implements AutoCloseable {

    /**
     * Mounts the file system below a folder; where that is not allowed, skips the test with a
     * message.
     *
     * @param options as mount takes them, such as {@code size=300k}
     */
    public static SmallDisk below(Path folder, String options) throws Exception {
        Path disk = Files.createDirectory(folder.resolve("disk"));
        assumeTrue(
                succeeds("mount", "-t", "tmpfs", "-o", options, "tmpfs", disk.toString()),
                "skipped: mounting a small tmpfs needs root on Linux");
        return new SmallDisk(disk);
    }

    @Override
    public void close() {
        assertThat(succeeds("umount", path.toString())).isTrue();
    }

    private static boolean succeeds(String... command) {
        try {
            Process process =
                    new ProcessBuilder(command)
                            .redirectErrorStream(true)
                            .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                            .start();
            return process.waitFor(10, TimeUnit.SECONDS) && process.exitValue() == 0;
        } catch (IOException e) {
            return false; // no such program here
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
    }
}
