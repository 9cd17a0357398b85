package dev.penstock.systemtests.faults;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.launch.RanksInOneJvm;
import dev.penstock.systemtests.support.CalmRuns;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Faults of a configuration happen, are reported, and do not change a bit of the loss. */
@Timeout(value = 5, unit = TimeUnit.MINUTES)
class InjectedFaultsIT {
    @TempDir Path folder;

    @Test
    void anInjectedNanEndsTheRunBeforeItsCommitAndIsLocated() {
        Trained ended =
                Training.onText(folder)
                        .set("fault=[{ inject-nan = 1, micro-batch = 2, step = 3 }]")
                        .run();

        assertThat(ended.exitCode()).isEqualTo(ExitCode.FAILURE);
        assertThat(ended.err()).contains("step 3", "stage 1", "micro-batch 2", "h.1", "not finite");
        assertThat(ended.losses()).hasSize(2);
        assertThat(ended.directory().resolve("report.html"))
                .content()
                .contains("Injected faults", "NaN into the activation of stage 1");
    }

    @Test
    void aNanOfTheFirstStageIsFoundByTheNextStage() {
        Trained ended = Training.onText(folder).set("fault=[{ inject-nan = 0, step = 1 }]").run();

        assertThat(ended.exitCode()).isEqualTo(ExitCode.FAILURE);
        assertThat(ended.err()).contains("step 1", "stage 1", "micro-batch 0", "not finite");
    }

    @Test
    void aFullDiskKeepsThePreviousCheckpointAndEveryLossBit() {
        List<String> bits = CalmRuns.onText().lossBits();

        Trained trained =
                Training.onText(folder.resolve("harmed"))
                        .set("fault=[{ fail-disk = 10 KiB, step = 8 }]")
                        .complete();

        assertThat(trained.lossBits()).isEqualTo(bits);
        assertThat(trained.directory().resolve("log.txt"))
                .content()
                .contains("could not save step 8", "bytes needed", "free", "No space left");
        assertThat(trained.directory().resolve("checkpoints/step-000004")).isDirectory();
        assertThat(trained.directory().resolve("checkpoints/step-000008")).doesNotExist();
        assertThat(trained.directory().resolve("checkpoints/step-000012")).isDirectory();
    }

    @ParameterizedTest
    @ValueSource(strings = {"ipc", "udp"})
    void harmedFramesDoNotChangeALossBit(String transport) {
        List<String> bits = CalmRuns.onText().lossBits();

        Trained trained =
                Training.onText(folder.resolve("harmed"))
                        .set("data-plane.transport=" + transport)
                        .set(
                                """
                                fault=[
                                  { drop-frames = 0.05, seed = 5 }
                                  { corrupt-frames = 0.05, seed = 6 }
                                  { duplicate-frames = 0.1, seed = 7 }
                                  { delay-frames = 0.02, for = 5 ms, seed = 8, from-step = 3 }
                                ]
                                """)
                        .complete();

        assertThat(trained.lossBits()).isEqualTo(bits);
    }

    @Test
    void aSlowStageIsReportedAndNotTakenForDead() {
        Trained trained =
                Training.onText(folder)
                        .set("run.steps=30", "evaluation.every=0", "checkpoint.every=0")
                        .set("fault=[{ slow-stage = 0, factor = 10 }]")
                        .complete();

        assertThat(trained.losses()).hasSize(30);
        assertThat(trained.directory().resolve("report.html"))
                .content()
                .contains("straggler: rank 0 takes", "stage 0 x10 slower in steps 1-30");
    }

    /** {@link GridFaultsIT} shows it of real processes, which are suspended as a whole. */
    @Test
    void aRankThatPausesForLessThanItsLeaseIsNotTakenForDead() {
        Trained trained =
                RanksInOneJvm.complete(
                        Training.onText(folder.resolve("harmed"))
                                .set("timeouts.lease=6 s")
                                .set(
                                        "fault=[{ pause-rank = 1, for = 2 s, step = 5, op = \"1F2\" }]"));

        assertThat(trained.lossBits()).isEqualTo(CalmRuns.onText().lossBits());
        assertThat(trained.directory().resolve("report.html"))
                .content()
                .contains("pause rank 1 for 2 s at op 1F2 of step 5", "survived")
                .doesNotContain("not reached");
    }
}
