package dev.penstock.examples;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.cli.Training;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Runs the examples as the documentation shows them. */
class ExamplesTest {
    @TempDir Path folder;

    private final ByteArrayOutputStream printed = new ByteArrayOutputStream();
    private final PrintStream out = new PrintStream(printed, true, StandardCharsets.UTF_8);

    @Test
    void aModelIsTrainedResumedAskedMeasuredAndServed() throws Exception {
        Path texts = Files.writeString(folder.resolve("river.txt"), Training.text(20_000));
        Path run = folder.resolve("run");

        assertThat(TrainExample.run(texts, run, out).step()).isEqualTo(6);
        GenerateExample.run(run, texts, out);

        assertThat(printed.toString(StandardCharsets.UTF_8))
                .contains("step 4: loss ", "went on to step 6", "perplexity ");
        assertThat(ServeExample.run(run)).contains("\"completion_tokens\":8");
    }

    @Test
    void aModelIsTrainedOnTokensOfTheProgram() {
        assertThat(OwnTokensExample.run(folder.resolve("run")).completed()).isTrue();
    }
}
