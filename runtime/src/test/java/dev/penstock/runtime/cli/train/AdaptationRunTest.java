package dev.penstock.runtime.cli.train;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.launch.RanksInOneJvm;
import java.io.IOException;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Whole runs whose layers move between stages while they go on. */
class AdaptationRunTest {
    private static final String SLOW = "{slow-stage=1, factor=60, from-step=1}";

    @TempDir Path folder;

    private Training training(String name) throws IOException {
        return Training.onText(folder.resolve(name))
                .set("run.steps=40", "model.layers=4", "evaluation.every=20");
    }

    private Training measured(String name, String... faults) throws IOException {
        return training(name)
                .set(
                        "pipeline.partition=measured",
                        "pipeline.adapt-every=3",
                        "fault=[%s]".formatted(String.join(", ", faults)));
    }

    @Test
    void layersLeaveASlowRankAndNoLossChanges() throws IOException {
        Trained calm = training("calm").complete();
        Trained moved = measured("moved", SLOW).complete();

        assertThat(moved.out())
                .contains("recovered: the plan changes to pipeline.partition=[3, 1]")
                .containsPattern("from the checkpoint of step \\d+, 0 steps lost")
                .contains("since the change of plan 1, the computations of a step take")
                .containsPattern("peak memory +rank 0 (\\S+ \\S+) \\(planned \\1\\)")
                .containsPattern("rank 1 (\\S+ \\S+) \\(planned \\1\\)");
        assertThat(moved.lossBits()).isEqualTo(calm.lossBits());
        assertThat(moved.validationBits()).isEqualTo(calm.validationBits());
    }

    /** Step 10 follows the second plan; one process dies in it, and another before its start. */
    @Test
    void deathsAfterLayersMovedDoNotChangeALoss() throws IOException {
        Trained calm = training("calm").complete();
        Trained moved =
                RanksInOneJvm.complete(
                        measured(
                                "moved",
                                SLOW,
                                "{kill-rank=0, step=8, at=saved}",
                                "{kill-rank=1, step=10, op=1B3}"));

        assertThat(moved.recoveries())
                .extracting(each -> each.get("cause").asText())
                .anyMatch(cause -> cause.contains("pipeline.partition=[3, 1]"))
                .anyMatch(cause -> cause.contains("rank 1") && cause.contains("died"));
        assertThat(moved.lossBits()).isEqualTo(calm.lossBits());
        assertThat(moved.validationBits()).isEqualTo(calm.validationBits());
    }

    /** A plan with weights, one of them without the dead rank, one with it: all in memory. */
    @Test
    void microBatchesLeaveASlowReplicaAndADeadRankAndNoLossChanges() throws IOException {
        String[] batch = {
            "batch={sequences=8, micro-batches=8}", "optimizer.gradient-sum=fixed-point"
        };
        Trained calm = training("calm").set(batch).set("run.steps=24").complete();
        Trained moved =
                RanksInOneJvm.complete(
                        training("moved")
                                .set(batch)
                                .set("run.steps=24", "parallel.data=2", "schedule.kind=wired-1f1b")
                                .set("schedule.wiring=measured", "pipeline.adapt-every=3")
                                .set("recovery.degraded=on", "timeouts.lease=30 s")
                                .set(
                                        "fault=[{slow-stage=0, replica=1, factor=30}, {slow-stage=1, replica=1, factor=30}, {kill-rank=1, step=12, op=1B0}]"));

        assertThat(moved.recoveries())
                .allSatisfy(each -> assertThat(each.get("restart").asText()).isEqualTo("memory"))
                .allSatisfy(each -> assertThat(each.get("stepsLost").asLong()).isZero())
                .extracting(each -> each.get("cause").asText())
                .anyMatch(cause -> cause.contains("micro-batches of the ranks instead of"))
                .anyMatch(cause -> cause.contains("rank 1") && cause.contains("died"));
        assertThat(moved.lossBits()).isEqualTo(calm.lossBits());
        assertThat(moved.validationBits()).isEqualTo(calm.validationBits());
    }
}
