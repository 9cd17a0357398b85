package dev.penstock.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
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

    private Path said(String text) throws IOException {
        return Files.writeString(folder.resolve("rank-1.out"), text);
    }
}
