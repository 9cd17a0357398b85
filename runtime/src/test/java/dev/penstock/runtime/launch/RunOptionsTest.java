package dev.penstock.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RunOptionsTest {
    @TempDir private Path directory;

    @Test
    void optionsAreReadAsTheyWereWritten() throws IOException {
        options("first").write();

        assertThat(RunOptions.read(directory)).isEqualTo(options("first"));
    }

    /** A power cut in the middle leaves the old ones. */
    @Test
    void newOptionsTakeThePlaceOfOldOnesAndDoNotOverwriteThem() throws IOException {
        options("first").write();
        Path written = directory.resolve("launch.properties");
        Path sameFile = Files.createLink(directory.resolve("link"), written);

        options("second").write();

        assertThat(sameFile).content().contains("first");
        assertThat(written).content().contains("second");
    }

    private RunOptions options(String runId) {
        return new RunOptions(
                runId, directory, Optional.empty(), Optional.empty(), Optional.empty(), false);
    }
}
