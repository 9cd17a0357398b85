package dev.penstock.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import java.io.IOException;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A run whose dead ranks cannot be started again goes on in the processes that are left. */
class RebalancedRunTest {
    @TempDir Path folder;

    private Training training(String name) throws IOException {
        return Training.onText(folder.resolve(name))
                .set("pipeline.stages=3", "model.layers=4", "run.steps=20", "evaluation.every=10");
    }

    /**
     * The second death takes the process that two ranks live in, after layers have moved. The slow
     * stage is so slow that the steps left are worth the change, on quick machines too.
     */
    @Test
    void ranksLiveTogetherLayersMoveAndNoLossChanges() throws IOException {
        Trained calm = training("calm").complete();
        Trained fewer =
                RanksInOneJvm.complete(
                        training("fewer")
                                .set(
                                        "pipeline.adapt-every=3",
                                        "recovery={max-restarts=0, spares=0, rebalance-after=1 s}",
                                        "fault=[{kill-rank=2, step=3, op=2B3}, {kill-rank=1, step=16, op=1F2}, {slow-stage=1, factor=100, from-step=1}]"));

        assertThat(fewer.recoveries())
                .extracting(each -> each.get("cause").asText())
                .hasSize(3)
                .anyMatch(cause -> cause.startsWith("rank 2"))
                .anyMatch(cause -> cause.contains("the plan changes to pipeline.partition"))
                .anyMatch(cause -> cause.startsWith("rank 1") && cause.contains(" and rank 2"));
        assertThat(fewer.lossBits()).isEqualTo(calm.lossBits());
        assertThat(fewer.validationBits()).isEqualTo(calm.validationBits());
    }
}
