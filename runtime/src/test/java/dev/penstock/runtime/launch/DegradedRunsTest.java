package dev.penstock.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Runs of four replicas of two stages that go on without ranks that died, and take them back. */
class DegradedRunsTest {
    private static final String[] ALONE = {
        "batch={sequences=8, micro-batches=8}",
        "optimizer.gradient-sum=fixed-point",
        "evaluation.every=5",
        "timeouts.lease=30 s"
    };

    @TempDir Path folder;

    @Test
    void deathsInEveryPhaseChangeNoLossAndCostNoStep() {
        Trained calm = Training.onText(folder.resolve("calm")).set(ALONE).complete();
        List<String> faults =
                List.of(
                        "{kill-rank=3, step=2, op=1B3}",
                        "{kill-rank=4, step=4, op=0F4}",
                        "{kill-rank=1, step=6, at=reducing}",
                        "{kill-rank=6, step=8, at=ready}",
                        "{kill-rank=5, step=10, at=optimizer}");
        Training training =
                Training.onText(folder.resolve("deaths"))
                        .set(ALONE)
                        .set("parallel.data=4", "schedule.kind=wired-1f1b", "schedule.hold-more=2")
                        .set("recovery.degraded=on", "fault=" + faults);

        Trained ended = RanksInOneJvm.complete(training);

        assertThat(ended.lossBits()).isEqualTo(calm.lossBits());
        assertThat(ended.validationBits()).isEqualTo(calm.validationBits());
        assertThat(ended.recoveries())
                .allSatisfy(
                        recovery -> {
                            assertThat(recovery.get("restart").asText()).isEqualTo("memory");
                            assertThat(recovery.get("stepsLost").asLong()).isZero();
                        })
                .extracting(recovery -> recovery.get("cause").asText())
                .filteredOn(cause -> cause.contains("died"))
                .hasSize(faults.size());
    }
}
