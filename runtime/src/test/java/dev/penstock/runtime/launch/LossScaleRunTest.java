package dev.penstock.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Runs whose loss is scaled: divided, overflowing, dying, and continued. */
class LossScaleRunTest {
    @TempDir private Path folder;
    private int runs;

    private Training tiny(String... settings) throws IOException {
        return Training.onText(Files.createDirectories(folder.resolve("run " + runs++)))
                .set("run.steps=8", "evaluation.every=4", "checkpoint.every=0")
                .set("optimizer.clip-norm=0.5", "model.layers=4")
                .set(settings);
    }

    private static void expectSame(Trained actual, Trained expected) {
        assertThat(actual.lossBits()).isEqualTo(expected.lossBits());
        assertThat(actual.validationBits()).isEqualTo(expected.validationBits());
        assertThat(actual.gradientNorms()).isEqualTo(expected.gradientNorms());
    }

    private Training halves(String... settings) throws IOException {
        return tiny("device.precision=fp16", "optimizer.loss-scale=dynamic")
                .set("optimizer.loss-scale-initial=16777216", "optimizer.loss-scale-window=4")
                .set("run.steps=14")
                .set(settings);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "pipeline.stages=1",
                "pipeline.stages=2",
                "pipeline.stages=4",
                "schedule={kind=seq1f1b, slices=2}",
                "parallel={data=2, zero.stage=0}",
                "parallel={data=2, zero.stage=1}",
                "parallel={data=2, zero.stage=2}",
                "parallel={data=2, zero.stage=3}",
                "parallel.tensor=2",
                "parallel.data=2;optimizer.gradient-sum=fixed-point"
            })
    void aScaleChangesNoBit(String layout) throws IOException {
        String[] settings = layout.split(";");
        Trained plain = tiny(settings).complete();

        boolean all = layout.equals("pipeline.stages=2");
        for (String scale : all ? List.of("1", "256", "65536", "dynamic") : List.of("65536")) {
            expectSame(tiny(settings).set("optimizer.loss-scale=" + scale).complete(), plain);
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "pipeline.stages=2",
                "parallel={data=2, zero.stage=3}",
                "parallel.tensor=2",
                "recovery.mirror=on",
                "parallel.data=2;optimizer.gradient-sum=fixed-point",
                "schedule={kind=zb-h1}"
            })
    void anOverflowAnywhereIsSkippedEverywhere(String layout) throws IOException {
        String[] settings = layout.split(";");
        String nan = "fault=[{inject-nan=1, micro-batch=1, step=3}]";
        Trained plain = tiny(settings).complete();

        Trained ended = tiny(settings).set("optimizer.loss-scale=256", nan).complete();

        assertThat(ended.out())
                .contains("step 3 skipped: overflow in rank 0, stage 0, with loss scale 256;");
        assertThat(ended.skipped()).containsExactly(3L);
        assertThat(ended.lossBits()).hasSize(7).startsWith(plain.lossBits().get(0));
        assertThat(ended.lossBits().get(1)).isEqualTo(plain.lossBits().get(1));
        assertThat(ended.lossBits().get(2)).startsWith("4 ");
        assertThat(ended.learningRates()[2]).isEqualTo(plain.learningRates()[2]);
        assertThat(ended.recoveries()).isEmpty();
    }

    private Training swapping(String... settings) throws IOException {
        return tiny("pipeline={stages=1, chunks=4}", "schedule.kind=breadth-first")
                .set("run.steps=6", "device.swap=\"%s\"".formatted(folder.resolve("swap")))
                .set(settings);
    }

    private Training resident(String... settings) throws IOException {
        return swapping(settings).set("device.swap=none");
    }

    @ParameterizedTest
    @ValueSource(strings = {"1", "256", "65536"})
    void aScaleChangesNoBitOfARunThatSwaps(String scale) throws IOException {
        Trained plain = resident().complete();

        Trained swapped = swapping("optimizer.loss-scale=" + scale).complete();

        expectSame(swapped, plain);
    }

    /** With two replicas of which one overflows, and in halves, whose first steps all do. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "optimizer.loss-scale=256;parallel.data=2;fault=[{inject-nan=1, micro-batch=1, step=3}]",
                "optimizer.loss-scale=dynamic;device.precision=bf16;fault=[{inject-nan=0, step=1}]",
                "optimizer={loss-scale=dynamic, loss-scale-initial=16777216};device.precision=fp16;run.steps=9"
            })
    void aRunThatSwapsSkipsTheStepsOfOneInMemory(String run) throws IOException {
        Trained resident = resident(run.split(";")).complete();
        assertThat(resident.skipped()).isNotEmpty();

        Trained swapped = swapping(run.split(";")).complete();

        assertThat(swapped.skipped()).isEqualTo(resident.skipped());
        assertThat(swapped.out()).contains("skipped: overflow");
        expectSame(swapped, resident);
    }

    @Test
    void aDynamicScaleFallsUntilHalvesHoldTheGradients() throws IOException {
        Trained ended = halves().complete();

        int applied = ended.lossBits().size();
        assertThat(applied).isBetween(6, 12);
        assertThat(ended.out().lines().filter(line -> line.contains("skipped: overflow")))
                .hasSize(14 - applied);
        assertThat(ended.losses().getLast()).isLessThan(ended.losses().getFirst() - 0.3);
    }

    @ParameterizedTest
    @ValueSource(strings = {"op=1F2", "at=ready", "at=optimizer", "at=updated"})
    void aDeathInAStepThatOverflowsChangesNoBit(String place) throws IOException {
        Trained whole = halves().complete();
        assertThat(whole.out()).contains("step 3 skipped");

        Trained ended =
                RanksInOneJvm.complete(
                        halves("recovery.mirror=on")
                                .set("fault=[{kill-rank=1, %s, step=3}]".formatted(place)));

        assertThat(ended.recoveries()).hasSize(1);
        assertThat(ended.recoveries().getFirst().get("restart").asText()).isEqualTo("mirror");
        assertThat(ended.skipped()).isEqualTo(whole.skipped());
        expectSame(ended, whole);
    }

    @Test
    void aRunThatGoesBackToItsCheckpointHasTheScaleOfThatStep() throws IOException {
        Trained whole = halves().complete();

        Trained ended =
                RanksInOneJvm.complete(
                        halves("checkpoint.every=4", "fault=[{kill-rank=1, op=1F2, step=7}]"));

        assertThat(ended.recoveries().getFirst().get("restart").asText()).isEqualTo("checkpoint");
        assertThat(ended.skipped()).isEqualTo(whole.skipped());
        assertThat(ended.lossBits().getLast()).isEqualTo(whole.lossBits().getLast());
    }

    @Test
    void aResumedRunHasTheBitsOfOneThatWasNotInterrupted() throws IOException {
        String rate = "optimizer.schedule=constant";
        Trained whole = halves(rate).complete();
        Training first = halves(rate, "run.steps=5", "checkpoint.every=5");
        first.complete();

        Trained ended = first.copy().resume().set("run.steps=14").complete();

        assertThat(ended.lossBits()).isEqualTo(whole.lossBits());
    }

    @Test
    void overflowsWithTheLeastScaleEndTheRun() throws IOException {
        String nans =
                IntStream.rangeClosed(1, 10)
                        .mapToObj("{inject-nan=1, step=%d}"::formatted)
                        .collect(Collectors.joining(",", "fault=[", "]"));

        Trained ended = tiny("run.steps=20", "optimizer.loss-scale=4", nans).run();

        assertThat(ended.exitCode()).isNotEqualTo(ExitCode.OK);
        assertThat(ended.err())
                .contains(
                        "step 10, rank 0, stage 0: an overflow, the 10th in a row with the least loss scale, 4;")
                .doesNotContain("\tat ");
    }

    @Test
    void whatCannotBeScaledIsOneError() throws IOException {
        Trained refused =
                tiny("optimizer.loss-scale=3", "optimizer.loss-scale-initial=5")
                        .set("device={kind=cuda, precision=fp16}")
                        .run();

        assertThat(refused.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(refused.err())
                .contains("optimizer.loss-scale")
                .contains("one of none, dynamic, or a power of two from 1 to 2^126");
        refused =
                tiny("optimizer.loss-scale-initial=5", "device={kind=cuda, precision=fp16}").run();
        assertThat(refused.err())
                .contains("optimizer.loss-scale-initial")
                .contains("try 4")
                .contains("device.precision");
        refused =
                tiny("optimizer.loss-scale=dynamic")
                        .set("data-plane={codec=int8, error-feedback=true}")
                        .run();
        assertThat(refused.err()).contains("data-plane.error-feedback");
    }
}
