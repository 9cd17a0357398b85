package dev.penstock.systemtests.faults;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.systemtests.support.ForkedCli;
import dev.penstock.systemtests.support.GridTraining;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/**
 * Ranks with replicas and shards die or are suspended in the middle of gathers, sums and commits:
 * the run continues with the same losses, bit for bit.
 */
@Tag("plain-code")
@EnabledOnOs(OS.LINUX)
@Timeout(value = 5, unit = TimeUnit.MINUTES)
class GridFaultsIT {
    @TempDir Path folder;

    /**
     * One of the rows of {@link DeathsInOneJvmIT}, with processes that are suspended as a whole for
     * less than their lease, in a gather and in an op: the others keep waiting as long as nothing
     * else is wrong. Then two deaths; after a mirror took over, the second takes both ranks with
     * it.
     */
    @Test
    void suspensionsAndTwoDeathsDoNotChangeABit() {
        String parallel = "data=2, zero.stage=3";
        List<String> bits = GridTraining.calmBits(parallel, ForkedCli.PLAIN_CODE);

        Trained ended =
                GridTraining.on(folder, parallel)
                        .set("pipeline.processes=per-stage", "recovery.mirror=on")
                        .set(ForkedCli.PLAIN_CODE)
                        .set("timeouts.lease=6 s")
                        .set(
                                "fault=[{pause-rank=1, for=2 s, step=2, at=gathering},"
                                        + " {pause-rank=0, for=2 s, step=2, op=\"0B1\"},"
                                        + " {kill-rank=1, step=3, op=\"0REDUCE_GRAD\"},"
                                        + " {kill-rank=0, step=6, at=optimizer}]")
                        .complete();

        assertThat(ended.lossBits()).isEqualTo(bits);
        assertThat(ended.recoveries())
                .extracting(recovery -> recovery.get("restart").asText())
                .containsExactly("mirror", "checkpoint");
        assertThat(ended.recoveries())
                .as("of those that died, and of none that was suspended")
                .allSatisfy(
                        recovery -> assertThat(recovery.get("cause").asText()).contains("died"));
        assertThat(ended.recoveries().getFirst().get("stepsLost").asLong()).isZero();
        assertThat(ended.directory().resolve("report.html"))
                .content()
                .contains("<td>mirrors</td>")
                .contains("pause rank 1 for 2 s at gathering of step 2")
                .contains("pause rank 0 for 2 s at op 0B1 of step 2")
                .doesNotContain("not reached");
    }

    /** Only a rank's thread is suspended, for longer than three times the slowest op so far. */
    @Test
    void aStalledSumIsReportedWithTheWaitingAndTheAwaitedRank() {
        Trained ended =
                GridTraining.on(folder, "data=2, zero.stage=2")
                        .set("timeouts.stall-report=1 s")
                        .set("fault=[{pause-rank=1, for=10 s, step=7, op=\"0REDUCE_GRAD\"}]")
                        .complete();

        assertThat(ended.recoveries()).isEmpty();
        assertThat(ended.directory().resolve("report.html"))
                .content()
                .contains("nothing has moved for")
                .containsPattern(
                        "rank 0: reduce-scatter .* of ranks \\[0, 1] waits for rank 1, for \\d");
    }
}
