package dev.penstock.systemtests.memory;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.launch.RanksInOneJvm;
import dev.penstock.runtime.launch.RunAssembly;
import dev.penstock.runtime.launch.RunOptions;
import dev.penstock.runtime.report.MemoryPlan;
import dev.penstock.systemtests.support.TinyFamily;
import dev.penstock.systemtests.support.TrafficTruth;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.assertj.core.data.Percentage;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The most that a rank holds equals what was planned before the run. */
class PlannedMemoryIT {
    private static final Percentage TOLERANCE = Percentage.withPercentage(5);

    @TempDir Path folder;

    static Stream<Arguments> runs() {
        return Stream.of(
                        "kind=zb-h1, recompute=blocks",
                        "kind=1f1b",
                        "kind=gpipe, backward=fifo",
                        "kind=gpipe, backward=reverse",
                        "kind=terapipe, slices=2",
                        "kind=seq1f1b, slices=2")
                .flatMap(
                        order ->
                                Stream.of(
                                        Arguments.of(order, 1, "float32"),
                                        Arguments.of(order, 3, "float32"),
                                        Arguments.of(order, 2, "bf16")));
    }

    @ParameterizedTest(name = "{0}, {1} stages, {2}")
    @MethodSource("runs")
    void everyRanksPeakIsAsPlanned(String order, int stages, String precision) throws Exception {
        Training training =
                Training.onText(folder)
                        .set("run.steps=3", "model.layers=3", "model.width=64")
                        .set("schedule={" + order + "}", "pipeline.stages=" + stages)
                        .set("device.precision=" + precision);

        List<Long> measured = training.complete().peakBytes();

        List<Long> planned = planned(training);
        assertThat(measured).hasSize(stages);
        for (int rank = 0; rank < stages; rank++) {
            assertThat(measured.get(rank))
                    .as("peak bytes of rank %d", rank)
                    .isCloseTo(planned.get(rank), TOLERANCE);
        }
    }

    /** Also covers what collectives between processes take, and each use separately. */
    @ParameterizedTest(name = "{0}, {1} stages, {2}")
    @CsvSource(
            delimiter = '|',
            value = {
                "data=2, zero.stage=3 | 1 | apart",
                "data=2, zero.stage=1 | 2 | together",
                "tensor=2             | 1 | apart",
                "context=2            | 2 | together"
            })
    void gridsUseThePlannedMemory(String parallel, int stages, String ranks) throws Exception {
        Training training =
                Training.onText(folder)
                        .set("run.steps=3", "model.layers=3", "model.width=64")
                        .set("parallel={" + parallel + "}", "evaluation.every=0")
                        .set("pipeline.stages=" + stages);
        boolean apart = ranks.equals("apart");
        if (apart) {
            training.set("pipeline.processes=per-stage");
        }

        Trained trained = apart ? RanksInOneJvm.complete(training) : training.complete();

        List<Long> planned = planned(training);
        assertThat(trained.peakBytes()).hasSize(2 * stages);
        for (int rank = 0; rank < planned.size(); rank++) {
            assertThat(trained.peakBytes().get(rank))
                    .as("peak bytes of rank %d", rank)
                    .isCloseTo(planned.get(rank), Percentage.withPercentage(5));
        }
        assertThat(trained.directory().resolve("profile.txt"))
                .content()
                .matches(text -> text.contains("gather-work 0 ") == parallel.contains("data"))
                .matches(text -> text.contains("reduce-work 0 ") == !parallel.contains("tensor"));
        assertThat(trained.directory().resolve("report.html"))
                .content()
                .containsPattern(
                        "<td>0</td><td>parameters</td><td>[0-9.]+ KiB</td>.*?<td>[+-]0.0 %")
                .contains("<td>key/value slices</td>")
                .matches(page -> page.contains("<td>collectives</td>") == apart);
    }

    /** To the byte, whatever blocks consist of. */
    @ParameterizedTest(name = "{0}: {1}, {2}, {3}")
    @CsvSource(
            delimiter = '|',
            value = {
                "llama   | kind=1f1b                    | stages=3           | float32",
                "llama   | kind=seq1f1b, slices=2       | tensor=2, stages=2 | bf16",
                "mistral | kind=1f1b                    | data=2, zero.stage=3, stages=1 | float32",
                "mistral | kind=seq1f1b, slices=2       | context=2, stages=1 | float32",
                "qwen2   | kind=seq1f1b, slices=2       | stages=2           | bf16",
                "qwen3   | kind=gpipe, recompute=full   | tensor=2, sequence=true, stages=1 | bf16",
                "qwen3   | kind=zb-h1, recompute=blocks | stages=2           | float32",
                "gpt3    | kind=seq1f1b, slices=2       | stages=3           | float32",
                "gpt3    | kind=1f1b                    | data=2, zero.stage=2, stages=1 | bf16",
                "retnet-mixed | kind=seq1f1b, slices=2  | tensor=2, stages=2 | bf16",
                "retnet-mixed | kind=zb-h1, recompute=blocks | stages=2      | float32",
                "retnet-mixed | kind=zb-h1, recompute=blocks | context=2, stages=1 | bf16"
            })
    void everyFamilysRunUsesThePlannedMemory(
            String family, String order, String parallel, String precision) throws Exception {
        String stages = parallel.replaceFirst(".*stages=", "");
        Training training =
                Training.onText(folder)
                        .set("run.steps=2", "evaluation.every=0", "checkpoint.every=0")
                        .set("model.layers=3", "model={" + TinyFamily.of(family) + "}")
                        .set("schedule={" + order + "}", "pipeline.stages=" + stages)
                        .set("parallel={" + parallel.replaceFirst(",? *stages=.*", "") + "}")
                        .set("device.precision=" + precision);

        Trained trained = training.complete();

        assertThat(trained.peakBytes()).isEqualTo(planned(training));
    }

    /** To the byte, with a scratch for each micro-batch that has begun its backward. */
    @ParameterizedTest(name = "{0}, {1} stages, {2}")
    @CsvSource(
            delimiter = '|',
            value = {
                "kind=1f1b                 | 2 | data=1",
                "kind=zb-h1                | 3 | data=1",
                "kind=gpipe, slices=2      | 2 | data=2",
                "kind=zb-v                 | 2 | data=2, zero.stage=1",
                "kind=zb-h1                | 2 | data=2, zero.stage=2",
                "kind=1f1b                 | 1 | data=2, zero.stage=3",
                "kind=1f1b                 | 2 | data=2, zero={stage=2, reduce=per-micro-batch}",
                "kind=1f1b                 | 1 | tensor=2, sequence=true"
            })
    void exactSumsOfGradientsTakeThePlannedMemory(String order, int stages, String parallel)
            throws Exception {
        Training training =
                Training.onText(folder)
                        .set("run.steps=2", "model.layers=3", "evaluation.every=0")
                        .set("checkpoint.every=0", "optimizer.gradient-sum=fixed-point")
                        .set("schedule={" + order + "}", "pipeline.stages=" + stages)
                        .set("parallel={" + parallel + "}");

        Trained trained = training.complete();

        assertThat(trained.peakBytes()).isEqualTo(planned(training));
        TrafficTruth.expectPredicted(trained);
    }

    /** The mirror of the previous rank, blocks in flight, and a rank of two stages. */
    @ParameterizedTest(name = "{0}, {1} ranks, {2}")
    @CsvSource(
            delimiter = '|',
            value = {
                "kind=1f1b | 3 | float32",
                "kind=zb-v | 2 | float32",
                "kind=seq1f1b, slices=2 | 2 | bf16"
            })
    void mirrorsUseThePlannedMemory(String order, int ranks, String precision) throws Exception {
        Training training =
                Training.onText(folder)
                        .set("run.steps=3", "model.layers=3", "model.width=64")
                        .set("schedule={" + order + "}", "pipeline.stages=" + ranks)
                        .set("device.precision=" + precision, "recovery.mirror=on");

        Trained trained = training.complete();
        List<Long> measured = trained.peakBytes();

        List<Long> planned = planned(training);
        for (int rank = 0; rank < ranks; rank++) {
            assertThat(measured.get(rank))
                    .as("peak bytes of rank %d", rank)
                    .isCloseTo(planned.get(rank), Percentage.withPercentage(5));
        }
        assertThat(TrafficTruth.expectPredicted(trained))
                .allSatisfy(rank -> assertThat(rank).containsKey("mirrored gradients"));
    }

    /** Every replica sends its own part of the sums, so both together send all of them once. */
    @Test
    void mirrorsReceiveWhatTheirReplicasHold() throws Exception {
        Training training =
                Training.onText(folder)
                        .set("run.steps=2", "model.layers=2", "model.width=64")
                        .set("parallel={data=2, zero.stage=2}", "pipeline.stages=1")
                        .set("model.tied=false", "recovery.mirror=on");

        List<Map<String, Long>> sent = TrafficTruth.expectPredicted(training.complete());

        long parts =
                sent.stream().mapToLong(rank -> rank.getOrDefault("mirrored gradients", 0L)).sum();
        long summed = sent.stream().mapToLong(rank -> rank.getOrDefault("gradient sums", 0L)).sum();
        assertThat(parts).isPositive().isEqualTo(summed);
    }

    /** Room that the stages of a rank use in turn exists only once. */
    @ParameterizedTest(name = "{0}, {1}")
    @CsvSource(
            delimiter = '|',
            value = {
                "kind=breadth-first | stage=2 | float32",
                "kind=breadth-first | stage=3, residency=pass | bf16",
                "kind=zb-v | stage=3, residency=micro-batch, reduce=per-micro-batch | float32",
                "kind=interleaved-1f1b | stage=3, residency=layer | float32"
            })
    void zeroUsesThePlannedMemory(String order, String zero, String precision) throws Exception {
        Training training =
                Training.onText(folder)
                        .set("run.steps=3", "model.layers=4", "model.width=64")
                        .set("schedule={" + order + "}", "pipeline={stages=2, chunks=2}")
                        .set("parallel={data=2, zero={" + zero + "}}")
                        .set("device.precision=" + precision);

        List<Long> measured = training.complete().peakBytes();

        List<Long> planned = planned(training);
        assertThat(measured).hasSize(4);
        for (int rank = 0; rank < 4; rank++) {
            assertThat(measured.get(rank))
                    .as("peak bytes of rank %d", rank)
                    .isCloseTo(planned.get(rank), Percentage.withPercentage(5));
        }
    }

    /**
     * With one byte less than the plan the judge reports which rank holds most, when, and what
     * would help.
     */
    @ParameterizedTest(name = "{0}, {1}")
    @CsvSource(
            delimiter = '|',
            value = {
                "kind=1f1b | zero.stage=1 | 0F1 | activations | schedule.recompute = full,"
                        + " schedule.offload = all, schedule.activations = fit,"
                        + " optimizer.state = int8, parallel.zero.stage = 2",
                "kind=breadth-first | zero={stage=3, residency=pass} | 1UNSHARD | gathered"
                        + " parameters | parallel.zero.residency = layer",
                "kind=gpipe, recompute=full | zero.stage=2 | 1F0 | throughout | parallel.zero.stage"
                        + " = 3, parallel.zero.offload = FOLDER"
            })
    void theJudgeFindsAMissingByte(String order, String zero, String op, String held, String advice)
            throws Exception {
        Training training =
                Training.onText(folder)
                        .set("run.steps=3", "model.layers=4", "model.width=64")
                        .set("schedule={" + order + "}", "parallel={data=2, " + zero + "}")
                        .set("pipeline.chunks=" + (order.contains("breadth") ? 2 : 1));
        List<Long> planned = planned(training);
        long most = Collections.max(planned);

        String refused = training.set("device.memory-limit=%d B".formatted(most - 1)).run().err();

        int rank = planned.indexOf(most);
        assertThat(refused)
                .contains("at least %,d bytes for rank %d with stage".formatted(most, rank))
                .contains("it holds most at " + op + " (op ", held, advice)
                .contains("got %,d bytes".formatted(most - 1))
                .doesNotContain("\tat ");
        Files.delete(folder.resolve("planned"));
        assertThat(planned(training.set("device.memory-limit=%d B".formatted(most))))
                .isEqualTo(planned);
    }

    /** The plan leaves nothing out: not a single byte more is needed. */
    @ParameterizedTest
    @ValueSource(strings = {"float32", "bf16"})
    void thePlannedMemoryIsEnough(String precision) throws Exception {
        Training training =
                Training.onText(folder)
                        .set("model.layers=3", "model.width=64", "pipeline.stages=2")
                        .set("device.precision=" + precision);
        long limit = Collections.max(planned(training));

        Trained trained = training.set("device.memory-limit=%d B".formatted(limit)).complete();

        assertThat(Collections.max(trained.peakBytes())).isEqualTo(limit);
    }

    /** Rank 2's process takes over rank 1, so rank 3 keeps the mirrors of both. */
    @Test
    void theMirrorsAfterADeathArePlannedBeforeTheStart() throws Exception {
        Training training =
                Training.onText(folder)
                        .set("run.steps=8", "model.layers=4", "model.width=64")
                        .set(
                                "pipeline={stages=4, processes=per-stage}",
                                "recovery.mirror=on",
                                "evaluation.every=0")
                        .set("fault=[{kill-rank=1, step=3, op=1F1}]");
        List<Long> calm = planned(training);
        Matcher refused =
                Pattern.compile(
                                "at least ([0-9,]+) bytes for rank 3 with stage 3, of them"
                                        + " ([0-9,]+)")
                        .matcher(
                                Training.onText(folder.resolve("refused"))
                                        .set(training.settings().toArray(String[]::new))
                                        .set("device.memory-limit=1 MiB")
                                        .run()
                                        .err());
        assertThat(refused.find()).isTrue();

        List<Long> measured = RanksInOneJvm.complete(training).peakBytes();

        long most = number(refused.group(1));
        assertThat(most - number(refused.group(2))).isEqualTo(calm.get(3));
        assertThat(measured.get(3)).isCloseTo(most, Percentage.withPercentage(5));
        assertThat(measured.get(0)).isCloseTo(calm.get(0), Percentage.withPercentage(5));
    }

    private static long number(String text) {
        return Long.parseLong(text.replace(",", ""));
    }

    private List<Long> planned(Training training) throws Exception {
        try (RunAssembly assembly =
                RunAssembly.of(
                        ConfigLoader.loadWithOrigins(training.configuration(), training.settings()),
                        new RunOptions(
                                "planned",
                                Files.createDirectory(folder.resolve("planned")),
                                Optional.empty(),
                                Optional.empty(),
                                Optional.empty(),
                                false))) {
            return assembly.plannedMemory().stream().map(MemoryPlan::total).toList();
        }
    }
}
