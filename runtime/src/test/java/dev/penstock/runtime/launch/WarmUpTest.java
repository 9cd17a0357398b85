package dev.penstock.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.config.run.RunConfig;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class WarmUpTest {
    @TempDir Path folder;

    @ParameterizedTest
    @CsvSource({"float32, cpu", "bf16, auto"})
    void itTrainsWithWhatTheRunTrainsWithAndEndsWhenTheRankComes(String precision, String kind)
            throws Exception {
        WarmUp warmUp = WarmUp.start(config(precision, kind).device());
        while (warmUp.steps() < 2 && !warmUp.join(Duration.ofMillis(1))) {
            // a step takes milliseconds
        }
        warmUp.close();

        assertThat(warmUp.join(Duration.ofMinutes(1))).as("ended").isTrue();
        assertThat(warmUp.steps()).isBetween(2, WarmUp.STEPS - 1);
    }

    private RunConfig config(String precision, String kind) throws Exception {
        Path file = folder.resolve("run.conf");
        Files.writeString(folder.resolve("text.txt"), "turbines turn");
        Files.writeString(
                file,
                """
                data { source = "text.txt" }
                device { kind = %s, precision = %s }
                """
                        .formatted(kind, precision));
        return ConfigLoader.loadWithOrigins(file, List.of()).config();
    }
}
