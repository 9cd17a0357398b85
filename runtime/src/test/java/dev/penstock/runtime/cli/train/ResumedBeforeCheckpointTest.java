package dev.penstock.runtime.cli.train;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A run that ended before it had saved anything is resumed from its beginning. */
class ResumedBeforeCheckpointTest {
    private static final String FROM_THE_START = "no checkpoint yet: starting from the beginning";

    @TempDir Path folder;

    @Test
    void aRunThatFailedEarlyStartsAgainWithTheBitsOfAFreshRun() {
        Trained fresh = Training.onText(folder.resolve("fresh")).complete();
        breakOff(Training.onText(folder.resolve("again")));

        Trained resumed = Training.onText(folder.resolve("again")).resume().complete();

        assertThat(resumed.err().lines()).singleElement().asString().contains(FROM_THE_START);
        assertThat(resumed.lossBits()).isEqualTo(fresh.lossBits());
        assertThat(resumed.validationBits()).isEqualTo(fresh.validationBits());
    }

    @Test
    void itStartsFromTheWeightsThatItWasStartedFrom() {
        Trained fresh = Training.golden(folder.resolve("fresh"), true).complete();
        breakOff(Training.golden(folder.resolve("again"), true));

        Trained resumed = Training.golden(folder.resolve("again"), true).resume().complete();

        assertThat(resumed.err()).contains(FROM_THE_START, "tied.init.safetensors");
        assertThat(resumed.lossBits()).isEqualTo(fresh.lossBits());
    }

    @Test
    void aCheckpointThatWasNeverFinishedIsNone() throws IOException {
        Training training = Training.onText(folder);
        breakOff(training);
        Files.createDirectory(
                training.directory().resolve("checkpoints/step-000004.epoch-1.incomplete"));

        Trained resumed = Training.onText(folder).resume().complete();

        assertThat(resumed.err())
                .contains("step-000004.epoch-1.incomplete: ignored", FROM_THE_START);
        assertThat(resumed.lossBits()).hasSize(12);
    }

    @Test
    void aRunThatWasKilledBeforeItsFirstFileStartsAsWell() throws IOException {
        Training training = Training.onText(folder).set("run.steps=2");
        Files.createDirectories(training.directory().resolve("checkpoints"));

        Trained resumed = training.resume().complete();

        assertThat(resumed.err()).contains(FROM_THE_START);
        assertThat(resumed.lossBits()).hasSize(2);
    }

    /** Runs into numbers that are none, before the first checkpoint. */
    private static void breakOff(Training training) {
        Trained failed =
                training.set("optimizer={learning-rate=1e30, warmup-steps=0, clip-norm=0}")
                        .set("optimizer.min-learning-rate=1", "checkpoint.every=0")
                        .run();
        assertThat(failed.exitCode()).as(failed.err()).isEqualTo(ExitCode.FAILURE);
        assertThat(failed.directory().resolve("checkpoints")).isEmptyDirectory();
    }
}
