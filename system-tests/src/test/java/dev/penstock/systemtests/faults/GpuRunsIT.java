package dev.penstock.systemtests.faults;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.gpu.EmulatedGpus;
import dev.penstock.runtime.metrics.RunDirectory;
import dev.penstock.systemtests.support.GoldenTruth;
import dev.penstock.systemtests.support.RunningTraining;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The whole program on emulated GPUs, one for each rank. */
@Tag("gpu")
class GpuRunsIT {
    private static final Duration LIMIT = Duration.ofSeconds(120);
    private static final String ONLY_GPU = "device.kind=\"cuda:0\"";

    @TempDir Path folder;

    @BeforeEach
    void gpus() {
        EmulatedGpus.require();
    }

    /**
     * Copies take long, so a rank that does not wait for one gets different losses; one run uses
     * graphs.
     */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "pipeline.stages=2",
                "parallel.tensor=2",
                "parallel={data=2,zero.stage=3}",
                "parallel.context=2"
            })
    void ranksOnGpusHavePyTorchsLossesAndFirstGradients(String division) throws IOException {
        EmulatedGpus.set("COPY_MILLIS", "2");
        Path gradients = folder.resolve("gradients.safetensors");

        Trained trained =
                Training.golden(folder, true)
                        .set("device.kind=cuda", "run.steps=5", division)
                        .set("device.graphs=" + division.startsWith("pipeline"))
                        .option("--dump-gradients", "1:" + gradients)
                        .complete();

        GoldenTruth.expectLosses(trained, true, "loss_fp64_accum4");
        GoldenTruth.expectFirstGradients(gradients, true);
    }

    /**
     * Copies take long, as above, and one run uses graphs. The last run's GPUs do not see each
     * other's memory.
     */
    @ParameterizedTest
    @ValueSource(strings = {"pipeline.stages=2", "pipeline.stages=4"})
    void tensorsCopiedFromDeviceToDeviceHaveTheSameBitsAsThroughTheHost(String stages)
            throws IOException {
        EmulatedGpus.requireEmulated();
        EmulatedGpus.set("COPY_MILLIS", "1");

        String layers = stages.replace("pipeline.stages", "model.layers");
        Trained direct = few("direct", stages, layers, "device.graphs=on").complete();
        Trained staged = few("staged", stages, layers, "data-plane.device-copies=false").complete();
        EmulatedGpus.set("NO_PEERS", "1");
        Trained apart = few("apart", stages, layers).complete();

        assertThat(direct.lossBits()).hasSize(3).isEqualTo(staged.lossBits());
        assertThat(apart.lossBits()).isEqualTo(staged.lossBits());
        assertThat(log(direct))
                .contains("from device to device")
                .doesNotContain("through the host");
        assertThat(log(apart)).contains("through the host: their devices do not see");
    }

    /** Two stages of two shards or of two replicas, each rank on its own GPU, and all on one. */
    @ParameterizedTest
    @ValueSource(strings = {"parallel.tensor=2", "parallel={data=2,zero.stage=1}"})
    void aGridOnFourGpusHasTheLossesThatItHasOnOne(String division) throws IOException {
        EmulatedGpus.requireEmulated();

        Trained four = few("four", "pipeline.stages=2", division).complete();
        Trained one = few("one", "pipeline.stages=2", division, ONLY_GPU).complete();

        assertThat(opened(four)).contains("cuda:0", "cuda:1", "cuda:2", "cuda:3");
        assertThat(opened(one)).contains("cuda:0").doesNotContain("cuda:1");
        assertThat(four.lossBits()).hasSize(3).isEqualTo(one.lossBits());
    }

    @Test
    void aGridOfProcessesOnFourGpusHasTheLossesThatItHasOnOne() throws Exception {
        EmulatedGpus.requireEmulated();
        String[] grid = {"pipeline.stages=2", "parallel.tensor=2"};
        Trained one = few("one", grid).set(ONLY_GPU).complete();
        Training apart =
                few("apart", grid).set("pipeline.processes=per-stage", "timeouts.start=3 minutes");
        Map<String, String> environment =
                Map.of("LD_LIBRARY_PATH", EmulatedGpus.folder().toString());

        try (RunningTraining run = RunningTraining.start(environment, apart)) {
            Trained ended = run.awaitEnd(LIMIT.multipliedBy(2));

            assertThat(ended.exitCode()).as(ended.out()).isEqualTo(ExitCode.OK);
            assertThat(opened(ended)).contains("cuda:0", "cuda:1", "cuda:2", "cuda:3");
            assertThat(ended.lossBits()).hasSize(3).isEqualTo(one.lossBits());
        }
    }

    /**
     * A step waits once for each computation, for each update, and at its end for the norms of both
     * stages and the losses of one; and at most once for each tensor that crosses: activations,
     * their gradients, and the gradient of the table that both stages have.
     */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aStepWaitsForItsGpusOnceAnOpAndOnceATensorThatCrosses(boolean copies) {
        EmulatedGpus.requireEmulated();
        long begin = EmulatedGpus.waits();
        few("three", "data-plane.device-copies=" + copies).complete();
        long three = EmulatedGpus.waits();
        few("five", "data-plane.device-copies=" + copies).set("run.steps=5").complete();
        long five = EmulatedGpus.waits();

        int microBatches = 4;
        int ofStep = 4 * microBatches + 2 + 3 + 2 * microBatches + 2;
        assertThat((five - three) - (three - begin)).isPositive().isLessThanOrEqualTo(2L * ofStep);
    }

    /** Which devices the ranks opened. */
    private static String opened(Trained trained) throws IOException {
        return Files.readString(new RunDirectory(trained.directory()).events());
    }

    private Training few(String name, String... settings) {
        return Training.onText(folder.resolve(name))
                .set("device.kind=cuda", "run.steps=3", "checkpoint.every=0")
                .set("evaluation.every=0")
                .set(settings);
    }

    private static String log(Trained trained) throws IOException {
        return Files.readString(new RunDirectory(trained.directory()).log());
    }

    /** The other end is well, and does not wait for what cannot arrive. */
    @Test
    void aGpuThatIsLostDuringACopyIsNamedWithItsRankAndStep() {
        EmulatedGpus.requireEmulated();
        EmulatedGpus.set("LOSE_AT_COPY", "0:5"); // the first of step 2

        Trained lost = few("lost", "pipeline.stages=2").run();

        assertThat(lost.exitCode()).isNotEqualTo(ExitCode.OK);
        assertThat(lost.out() + lost.err())
                .contains("rank 0", "step ", "of GPU 1 from GPU 0; GPU 0: the GPU is lost")
                .doesNotContain("\tat ");
    }

    /** While tokens come: a host that read them where they are would end with its process. */
    @Test
    void aGpuThatIsLostDuringACopyFromTheHostIsNamedWithItsRankAndStep() {
        EmulatedGpus.requireEmulated();
        EmulatedGpus.set("LOSE_AT_HOST_COPY", "0:48"); // tokens, after 14 weights

        Trained lost = few("lost", "pipeline.stages=2").run();

        assertThat(lost.exitCode()).isNotEqualTo(ExitCode.OK);
        assertThat(lost.out() + lost.err())
                .contains("rank 0", "step ", "GPU 0: the GPU is lost")
                .doesNotContain("\tat ");
    }

    @Test
    void replicasOnGpusThatDoNotSeeEachOthersMemoryAreToldTheWaysOut() {
        EmulatedGpus.requireEmulated();
        EmulatedGpus.set("NO_PEERS", "1");
        String[] replicas = {"parallel.data=2", "batch.sequences=4", "pipeline.stages=1"};

        Trained refused = few("refused", replicas).run();

        assertThat(refused.exitCode()).isNotEqualTo(ExitCode.OK);
        assertThat(refused.out() + refused.err())
                .contains("neither sees the other's memory; try pipeline.processes = per-stage")
                .doesNotContain("\tat ");
        Trained together = few("together", replicas).set("device.kind=\"cuda:0\"").complete();
        assertThat(together.lossBits()).hasSize(3);
    }

    /** The sums are not in rank order, but the same run has the same bits, with graphs too. */
    @ParameterizedTest
    @ValueSource(strings = {"parallel.data=3", "parallel={data=3,zero.stage=3}"})
    void replicasOnGpusSumByNccl(String division) throws IOException {
        EmulatedGpus.requireEmulated();
        String[] settings = {
            division, "batch.sequences=3", "batch.micro-batches=3", "pipeline.stages=1"
        };

        Trained ordered = few("ordered", settings).complete();
        Trained nccl = few("nccl", settings).set("parallel.collectives=nccl").complete();
        Trained again =
                few("again", settings)
                        .set("parallel.collectives=auto", "device.graphs=on")
                        .complete();

        assertThat(nccl.out()).contains("collectives: NCCL 2.27.3 in /");
        assertThat(log(nccl)).contains("REPLICAS of ranks [0, 1, 2] sums by NCCL 2.27.3");
        assertThat(again.lossBits()).isEqualTo(nccl.lossBits()).isNotEqualTo(ordered.lossBits());
        for (int step = 0; step < 3; step++) {
            assertThat(nccl.losses().get(step)).isCloseTo(ordered.losses().get(step), within(1e-4));
        }
    }

    /** A text run evaluates, writes checkpoints and resumes from one. */
    @Test
    void aRunOnOneGpuResumesFromItsCheckpoint() throws IOException {
        onOneGpu().set("run.steps=3").complete();

        Trained resumed = onOneGpu().set("run.steps=6").resume().complete();

        assertThat(Trained.lossBits(resumed.directory())).hasSize(6);
        assertThat(resumed.validationBits()).isNotEmpty();
    }

    private Training onOneGpu() {
        return Training.onText(folder).set("device.kind=\"cuda:1\"", "checkpoint.every=3");
    }

    @Test
    void aGpuWithoutRoomEndsTheRunWithOneClearError() {
        EmulatedGpus.requireEmulated();
        EmulatedGpus.set("MEMORY_MIB", "1");

        Trained refused = Training.onText(folder).set("device.kind=cuda", "model.width=128").run();

        assertThat(refused.exitCode()).isNotEqualTo(ExitCode.OK);
        assertThat(refused.out() + refused.err()).contains("no room for", "bytes left");
    }

    @Test
    void aKernelThatFailsEndsTheRunAndTheNextRunSucceeds() throws IOException {
        EmulatedGpus.requireEmulated();
        EmulatedGpus.set("FAIL_LAUNCH", "1:400");

        Trained failed =
                Training.golden(Files.createDirectory(folder.resolve("failing")), true)
                        .set("device.kind=cuda", "pipeline.stages=2")
                        .run();
        EmulatedGpus.set("FAIL_LAUNCH", "");

        assertThat(failed.exitCode()).isNotEqualTo(ExitCode.OK);
        assertThat(failed.out() + failed.err()).contains("GPU 1");
        Trained next =
                Training.golden(Files.createDirectory(folder.resolve("next")), true)
                        .set("device.kind=cuda", "pipeline.stages=2", "run.steps=5")
                        .complete();
        GoldenTruth.expectLosses(next, true, "loss_fp64_accum4");
    }

    /**
     * Ranks run in separate processes: the one that used the lost GPU dies, after reporting why.
     */
    @Test
    void aRankWhoseGpuIsLostContinuesOnAnotherGpuWithTheSameLosses() throws Exception {
        EmulatedGpus.requireEmulated();
        List<String> losses = onTwoGpus("whole").complete().lossBits();
        Map<String, String> environment =
                Map.of(
                        "LD_LIBRARY_PATH",
                        EmulatedGpus.folder().toString(),
                        "PENSTOCK_EMULATOR_LOSE_DEVICE",
                        "1:400");
        Training perStage = onTwoGpus("lossy").set("pipeline.processes=per-stage");

        try (RunningTraining run = RunningTraining.start(environment, perStage)) {
            Trained ended = run.awaitEnd(LIMIT);

            assertThat(ended.exitCode()).as(ended.out()).isEqualTo(ExitCode.OK);
            assertThat(ended.lossBits()).isEqualTo(losses);
            assertThat(ended.out())
                    .contains("recovered: rank 1", "GPU 1: the GPU is lost")
                    .doesNotContain("\tat ");
            assertThat(run.log("lost-gpus.txt").lines()).hasSize(1);
            assertThat(run.log("rank-1-start-2.out")).doesNotContain("GPU 1");
        }
    }

    private Training onTwoGpus(String name) throws IOException {
        return Training.golden(Files.createDirectory(folder.resolve(name)), true)
                .set("device.kind=cuda", "pipeline.stages=2", "run.steps=5");
    }

    /** The GPU takes its rank's memory with it: only the last checkpoint is left. */
    @Test
    void aLostGpuEndsTheRunAndIsNamed() {
        EmulatedGpus.requireEmulated();
        EmulatedGpus.set("LOSE_DEVICE", "1:400");

        Trained lost =
                Training.golden(folder, true).set("device.kind=cuda", "pipeline.stages=2").run();

        assertThat(lost.exitCode()).isNotEqualTo(ExitCode.OK);
        assertThat(lost.out() + lost.err())
                .contains("rank 1", "step ", "GPU 1: the GPU is lost")
                .doesNotContain("\tat ");
    }

    @AfterEach
    void noFaults() {
        EmulatedGpus.set("FAIL_LAUNCH", "");
        EmulatedGpus.set("LOSE_DEVICE", "");
        EmulatedGpus.set("MEMORY_MIB", "");
        EmulatedGpus.set("COPY_MILLIS", "");
        EmulatedGpus.set("NO_PEERS", "");
        EmulatedGpus.set("LOSE_AT_COPY", "");
        EmulatedGpus.set("LOSE_AT_HOST_COPY", "");
    }
}
