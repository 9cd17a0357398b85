package dev.penstock.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A rank that dies reads the lengths of every repeated step anew. */
class UnequalRecoveryTest {
    @TempDir Path undisturbed;
    @TempDir Path disturbed;

    private static Training unequal(Path folder) throws IOException {
        Training training =
                Training.onText(folder)
                        .set("run.steps=6", "evaluation.every=2", "checkpoint.every=2")
                        .set("data.format=jsonl", "data.packing=lengths", "batch.length-step=4");
        StringBuilder lines = new StringBuilder();
        String text = Training.text(20_000).replace("\n", " ");
        for (int from = 0, length = 3; from + length < text.length(); length = length % 37 + 5) {
            lines.append("{\"text\": \"%s\"}\n".formatted(text.substring(from, from + length)));
            from += length;
        }
        Files.writeString(folder.resolve("text.txt"), lines);
        return training;
    }

    @Test
    void aRunGoesOnAfterADeathWithTheSameBits() throws IOException {
        Trained whole = unequal(undisturbed).complete();

        Trained ended =
                RanksInOneJvm.complete(
                        unequal(disturbed).set("fault=[{kill-rank=1, op=1F2, step=4}]"));

        assertThat(ended.recoveries()).hasSize(1);
        assertThat(ended.lossBits()).isEqualTo(whole.lossBits());
        assertThat(ended.validationBits()).isEqualTo(whole.validationBits());
    }
}
