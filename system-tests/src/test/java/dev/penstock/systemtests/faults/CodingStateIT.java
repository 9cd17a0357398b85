package dev.penstock.systemtests.faults;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.systemtests.support.CalmRuns;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What links keep of a step is in the checkpoint from which processes go on after a kill -9. */
@Timeout(value = 5, unit = TimeUnit.MINUTES)
class CodingStateIT {
    /** Error feedback, and deltas of five of the seven rows to train on. */
    private static final String[] KEPT = {
        "data-plane.codec=int8",
        "data-plane.gradient-codec=top-k",
        "data-plane.error-feedback=true",
        "data-plane.delta-rows=5",
        "data.packing=padded",
        "data.validation-fraction=0.99"
    };

    @TempDir Path folder;

    @Test
    void aKilledProcessDoesNotChangeABitOfARunWhoseLinksKeepSomething() {
        Training training =
                Training.onText(folder)
                        .set(KEPT)
                        .set("pipeline.processes=per-stage")
                        .set("fault=[{kill-rank=1, step=7, op=1B2}]");

        Trained ended = training.complete();

        assertThat(ended.recoveries()).hasSize(1);
        assertThat(ended.recoveries().getFirst().get("restart").asText()).isEqualTo("checkpoint");
        assertThat(ended.lossBits()).isEqualTo(CalmRuns.onText(KEPT).lossBits());
    }
}
