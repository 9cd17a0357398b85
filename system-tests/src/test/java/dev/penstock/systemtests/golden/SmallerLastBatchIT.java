package dev.penstock.systemtests.golden;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Every epoch ends with a smaller step, however the run is divided. */
class SmallerLastBatchIT {
    @TempDir Path folder;

    @ParameterizedTest
    @ValueSource(
            strings = {
                "pipeline.stages=2",
                "pipeline.stages=1; parallel={tensor=2, data=2, zero.stage=3}",
                "pipeline.stages=2; parallel={tensor=2, sequence=true}",
                "pipeline.stages=2; parallel={context=2, data=2, zero.stage=2}",
                "pipeline.stages=2; schedule={kind=seq1f1b, slices=2}",
                "pipeline={stages=2, chunks=2}; schedule.kind=zb-v"
            })
    void everyLayoutHasTheLossesOfOneRank(String layout) throws IOException {
        Trained one = training("one", "pipeline.stages=1").complete();

        Trained divided = training("divided", layout).complete();

        assertThat(one.losses()).hasSize(6);
        for (int step = 0; step < 6; step++) {
            assertThat(divided.losses().get(step))
                    .as("step %d", step + 1)
                    .isCloseTo(one.losses().get(step), within(2e-5));
        }
        assertThat(divided.validationBits()).hasSameSizeAs(one.validationBits());
    }

    /**
     * The third step of an epoch has one of four sequences, so its loss differs from that with
     * four.
     */
    @Test
    void aFullLastStepHasAnotherLoss() throws IOException {
        Trained smaller = training("one", "pipeline.stages=1").complete();
        Trained full = training("full", "pipeline.stages=1; batch.last=full").complete();

        assertThat(smaller.lossBits().subList(0, 2)).isEqualTo(full.lossBits().subList(0, 2));
        assertThat(smaller.lossBits().get(2)).isNotEqualTo(full.lossBits().get(2));
        long whole = full.tokens().getFirst();
        assertThat(full.tokens()).containsOnly(whole);
        assertThat(smaller.tokens())
                .containsExactly(whole, whole, whole / 4, whole, whole, whole / 4);
    }

    /** A configuration with 9 windows to train on: steps of 4, 4 and 1 sequences. */
    private Training training(String name, String settings) throws IOException {
        Path text = Files.writeString(folder.resolve("short.txt"), Training.text(400));
        return Training.onText(folder.resolve(name))
                .set("run.steps=6", "data={source=\"%s\", validation-fraction=0.2}".formatted(text))
                .set("batch.last=smaller")
                .set(settings.split("; "));
    }
}
