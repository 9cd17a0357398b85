package dev.penstock.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class StageProcessesTest {
    @TempDir Path folder;

    @Test
    void aProcessThatFailedIsQuoted() throws IOException {
        assertThat(StageProcesses.how(4711, 1, said("no room for stage 1")))
                .isEqualTo("its process 4711 ended with exit code 1, saying: no room for stage 1");
    }

    /** Its last words may be of a recovery that went well. */
    @ParameterizedTest
    @CsvSource({"137, 9", "143, 15"})
    void aProcessThatWasKilledIsNotQuoted(int code, int signal) throws IOException {
        assertThat(StageProcesses.how(4711, code, said("WARN  rank 1 parks")))
                .isEqualTo(
                        "its process 4711 ended with exit code %d (signal %d)"
                                .formatted(code, signal));
    }

    @Test
    void aProcessThatCrashedIsQuotedByItsLastWholeLines() throws IOException {
        String crash = "# A fatal error has been detected\n";

        assertThat(StageProcesses.how(4711, 134, said("noise\n".repeat(1000) + crash)))
                .startsWith("its process 4711 ended with exit code 134 (signal 6), saying: noise\n")
                .endsWith("# A fatal error has been detected")
                .hasSizeLessThan(1000);
    }

    /** It would not notice that its input ends, and the others' patience is not for it. */
    @Test
    @Timeout(60)
    @EnabledOnOs(OS.LINUX)
    void aSuspendedProcessIsNotWaitedFor() throws Exception {
        Process suspended = new ProcessBuilder("cat").start();
        Process polite = new ProcessBuilder("cat").start();
        try {
            assertThat(suspend(suspended).waitFor()).isZero();
            await().until(() -> LinuxVitals.ofThisHost().isSuspended(suspended.pid()));

            StageProcesses.end(List.of(suspended, polite), Duration.ofHours(1));

            assertThat(suspended.exitValue()).isEqualTo(137);
            assertThat(polite.exitValue()).isZero();
        } finally {
            suspended.destroyForcibly();
            polite.destroyForcibly();
        }
    }

    private static Process suspend(Process child) throws IOException {
        return new ProcessBuilder("kill", "-STOP", Long.toString(child.pid())).start();
    }

    private Path said(String text) throws IOException {
        return Files.writeString(folder.resolve("rank-1.out"), text);
    }
}
