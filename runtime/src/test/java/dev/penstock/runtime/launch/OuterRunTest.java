package dev.penstock.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Runs whose replicas take steps alone: continued, dying, and refused. */
class OuterRunTest {
    private static final String WAVES = "outer={every=6, fragments=2, lag=2, codec=int8}";

    @TempDir private Path folder;
    private int runs;

    private Training apart(String outer, String... settings) throws IOException {
        return Training.onText(Files.createDirectories(folder.resolve("run " + runs++)))
                .set("run.steps=11", "evaluation.every=4", "checkpoint.every=0")
                .set("batch={sequences=4, micro-batches=4}", "optimizer.schedule=constant")
                .set("parallel={data=2, " + outer + "}")
                .set(settings);
    }

    /** While an exchange is under way, and right after one was applied. */
    @ParameterizedTest(name = "{0} from step {1}")
    @CsvSource(
            delimiter = '|',
            value = {
                WAVES + " | 7",
                WAVES + " | 8",
                "outer={every=3, after=5} | 4",
                "outer={every=3, optimizer=sgd, momentum=0}, tensor=2 | 7"
            })
    void aContinuedRunHasTheLossesOfOneThatNeverStopped(String outer, int from) throws IOException {
        Trained whole = apart(outer).complete();
        Training first = apart(outer, "run.steps=" + from, "checkpoint.every=" + from);
        first.complete();

        Trained ended = first.copy().resume().set("run.steps=11").complete();

        assertThat(ended.lossBits()).isEqualTo(whole.lossBits());
        assertThat(ended.validationBits()).containsAll(whole.validationBits());
    }

    /**
     * While an exchange is under way, when its difference was just noted, and while others wait for
     * it, in a step and for a checkpoint.
     */
    @ParameterizedTest(name = "{0} {1}")
    @CsvSource(
            delimiter = '|',
            value = {
                WAVES
                        + " | {kill-rank=0, at=updated, step=6}, {kill-rank=3, op=1B0, step=9},"
                        + " {kill-rank=2, at=begin, step=9}",
                "outer={every=3} | {kill-rank=1, op=1F0, step=7}",
                "outer={every=3, after=4} | {kill-rank=1, op=1F0, step=4},"
                        + " {kill-rank=2, at=checkpoint, step=7}, {kill-rank=2, at=updated, step=8}"
            })
    void deathsChangeNoBit(String outer, String faults) throws IOException {
        Trained whole = apart(outer).complete();

        Trained ended =
                RanksInOneJvm.complete(
                        apart(outer, "checkpoint.every=7").set("fault=[" + faults + "]"));

        assertThat(ended.recoveries()).hasSize(faults.split("}, ").length);
        assertThat(ended.lossBits()).isEqualTo(whole.lossBits());
        assertThat(ended.validationBits()).isEqualTo(whole.validationBits());
    }

    /** With evaluations and a checkpoint while an exchange is under way. */
    @Test
    void replicasThatSwapHaveTheBitsOfThoseInMemory() throws IOException {
        String[] order = {
            "model.layers=4",
            "pipeline={stages=1, chunks=4, partition=[1, 1, 1, 1]}",
            "schedule.kind=breadth-first",
            "checkpoint.every=7"
        };
        Trained resident = RanksInOneJvm.complete(apart(WAVES, order));

        Trained swapped =
                RanksInOneJvm.complete(
                        apart(WAVES, order)
                                .set("device.swap=\"%s\"".formatted(folder.resolve("swap"))));

        assertThat(swapped.lossBits()).isEqualTo(resident.lossBits());
        assertThat(swapped.validationBits()).isEqualTo(resident.validationBits());
    }

    /** Three exchanges of everything, of which the second is between a step and its evaluation. */
    @ParameterizedTest
    @ValueSource(strings = {"none", "int8"})
    void whatIsSentIsWhatWasPredicted(String codec) throws IOException {
        String outer = "outer={every=3, codec=%s}".formatted(codec);
        for (Trained ended :
                List.of(
                        apart(outer, "evaluation.every=6").complete(),
                        RanksInOneJvm.complete(apart(outer, "evaluation.every=6")))) {
            for (int rank = 0; rank < 4; rank++) {
                int of = rank;
                long sent =
                        ended.sentBytes().stream()
                                .mapToLong(step -> step.get(of).path("outer gradients").asLong())
                                .sum();
                JsonNode predicted =
                        ended.summary().get("ranks").get(rank).get("predictedSentBytes");
                assertThat(sent).isEqualTo(3 * predicted.get("outer gradients").asLong());
                assertThat(ended.sentBytes())
                        .allSatisfy(
                                step ->
                                        assertThat(withoutOuter(step.get(of)))
                                                .isEqualTo(withoutOuter(predicted)));
            }
        }
    }

    /** Exchanges behind steps 4 and 6, of which the second is not told of any more. */
    @Test
    void gradientsTravelInStepsThatSumAndOuterGradientsInOthers() throws IOException {
        Trained ended = apart("outer={every=2, after=2}", "run.steps=6").complete();

        List<List<JsonNode>> steps = ended.sentBytes();
        JsonNode predicted = ended.summary().get("ranks").get(0).get("predictedSentBytes");
        for (int step = 1; step <= 6; step++) {
            JsonNode sent = steps.get(step - 1).get(0);
            assertThat(sent.path("gradient sums").asLong())
                    .isEqualTo(step <= 2 ? predicted.get("gradient sums").asLong() : 0);
            assertThat(sent.path("outer gradients").asLong())
                    .isEqualTo(step == 5 ? predicted.get("outer gradients").asLong() : 0);
        }
        assertThat(predicted.get("gradient sums").asLong()).isPositive();
        assertThat(ended.out()).contains("as predicted");
    }

    private static Map<String, Long> withoutOuter(JsonNode sentBytes) {
        Map<String, Long> others = new HashMap<>();
        sentBytes
                .propertyStream()
                .forEach(use -> others.put(use.getKey(), use.getValue().asLong()));
        others.remove("outer gradients");
        others.values().removeIf(bytes -> bytes == 0);
        return others;
    }

    /** Where step 4 is skipped, step 3 is the last that replicas sum in either run. */
    @Test
    void anchorsAreWhatIsReachedAlsoWhereTheLastStepThatSumsIsSkipped() throws IOException {
        String[] skipped = {
            "run.steps=8", "recovery.non-finite=skip", "fault=[{inject-nan=1, step=4}]"
        };

        Trained before = apart("outer={every=3, after=4}", skipped).complete();
        Trained alone = apart("outer={every=4, after=3}", skipped).complete();

        assertThat(before.lossBits()).hasSize(7).isEqualTo(alone.lossBits());
        assertThat(before.validationBits()).isEqualTo(alone.validationBits());
    }

    @Test
    void replicasThatAreToSumAgainContinueFromTheOuterParameters() throws IOException {
        Trained summed = continued("parallel.outer.after=9");
        Trained always = continued("parallel.outer.every=none");

        assertThat(summed.lossBits()).hasSize(9).isEqualTo(always.lossBits());
        assertThat(summed.validationBits()).isEqualTo(always.validationBits());
    }

    /** After a step in which replicas differ. */
    private Trained continued(String setting) throws IOException {
        Training first = apart("outer={every=3, lag=1}", "run.steps=5", "checkpoint.every=5");
        first.complete();
        return first.copy().resume().set("run.steps=9", setting).complete();
    }

    @Test
    void aRunContinuesWithMoreReplicasFromTheOuterParameters() throws IOException {
        Training first = apart("outer={every=3}", "run.steps=6", "checkpoint.every=6");
        first.complete();

        Trained ended = first.copy().resume().set("run.steps=9", "parallel.data=4").complete();

        assertThat(ended.lossBits()).hasSize(9);
        assertThat(ended.validationBits().getLast()).startsWith("9 ");
    }

    @ParameterizedTest(name = "{0}")
    @CsvSource(
            delimiter = '|',
            value = {
                "parallel.data=1 | parallel.data = 1",
                "parallel.context=2 | parts of a sequence",
                "parallel.zero.stage=1 | hold nothing in common",
                "parallel.outer.fragments=9 | parallel.outer.fragments",
                "parallel.outer.lag=3 | less than the 3 steps",
                "optimizer.gradient-sum=fixed-point | each sums what it computes itself",
                "recovery.mirror=true | mirrors do not have"
            })
    void whatDoesNotFitIsOneError(String setting, String reason) throws IOException {
        Trained refused = apart("outer={every=3}", setting).run();

        assertThat(refused.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(refused.err()).contains(reason).doesNotContain("\tat ");
        assertThat(refused.err().lines().filter(line -> line.contains("expected"))).hasSize(1);
    }
}
