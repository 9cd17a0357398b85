package dev.penstock.runtime.cli.train;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import com.fasterxml.jackson.databind.JsonNode;
import dev.penstock.runtime.checkpoint.SavedCheckpoint;
import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.launch.RunAssembly;
import dev.penstock.runtime.launch.RunOptions;
import dev.penstock.runtime.report.MemoryPlan;
import dev.penstock.runtime.safetensors.StoredType;
import dev.penstock.runtime.safetensors.TensorFacts;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Stages of which nothing is trained do nothing that nobody needs, and change no bit. */
class FrozenStagesRunTest {
    @TempDir Path folder;

    private Training training(String name) throws Exception {
        return Training.onText(Files.createDirectories(folder.resolve(name)))
                .set("run.steps=3", "model.layers=4", "checkpoint.every=0");
    }

    /** Leading frozen stages, frozen ones between trained ones, a stage that is partly frozen. */
    @ParameterizedTest(name = "{0}, {1}, {2}, {3}")
    @CsvSource(
            delimiter = '|',
            value = {
                "freeze=[\"w*\", \"h.0.*\", \"h.1.*\"] | kind=1f1b | stages=4 | float32",
                "freeze=[\"w*\", \"h.0.*\", \"h.2.*\"] | kind=zb-h1 | stages=4 | float32",
                "freeze=[\"w*\", \"h.0.*\", \"h.2.*\"] | kind=gpipe, backward=fifo | stages=4 | bf16",
                "method=lora, freeze=[\"h.0.*\", \"h.1.*\"] | kind=seq1f1b, slices=2 | stages=4 | float32",
                "method=lora, freeze=[\"h.0.*\"] | kind=1f1b, recompute=full | stages=2, partition=[2, 2] | float32",
                "method=lora, targets=[mlp.c_fc], freeze=[\"h.0.*\"] | kind=zb-h1, recompute=blocks | stages=2, partition=[2, 2] | bf16",
                "freeze=[\"w*\", \"h.*\"] | kind=1f1b | stages=2, partition=[2, 2] | float32",
                "method=lora, freeze=[\"h.0.*\"] | kind=zb-v | stages=2 | float32",
                "freeze=[\"w*\", \"h.0.*\", \"h.1.*\", \"h.2.ln_1.*\", \"h.2.attn.*\"] | kind=interleaved-1f1b | stages=2, chunks=2 | float32"
            })
    void bitsAreThoseOfOneStageAndMemoryIsAsPlanned(
            String tuning, String order, String pipeline, String precision) throws Exception {
        String sliced = order.contains("slices") ? "kind=seq1f1b, slices=2" : "kind=1f1b";
        Trained alone =
                training("alone")
                        .set("fine-tune={" + tuning + "}", "schedule={" + sliced + "}")
                        .set("pipeline.stages=1", "device.precision=" + precision)
                        .complete();
        Training training =
                training("pipeline")
                        .set("fine-tune={" + tuning + "}", "schedule={" + order + "}")
                        .set("pipeline={" + pipeline + "}", "device.precision=" + precision);

        Trained trained = training.complete();

        assertThat(trained.lossBits()).isEqualTo(alone.lossBits());
        assertThat(trained.validationBits()).isEqualTo(alone.validationBits());
        assertThat(trained.gradientNorms()).isEqualTo(alone.gradientNorms());
        assertThat(trained.peakBytes()).isEqualTo(planned(training));
    }

    @ParameterizedTest
    @CsvSource({"1", "2", "3"})
    void replicasOfFrozenStagesSumNothing(int zero) throws Exception {
        Training training =
                training("replicas")
                        .set("fine-tune.freeze=[\"w*\", \"h.0.*\", \"h.1.*\"]")
                        .set("parallel={data=2, zero.stage=" + zero + "}")
                        .set("pipeline={stages=2, partition=[2, 2]}");

        Trained trained = training.complete();

        assertThat(trained.peakBytes()).isEqualTo(planned(training));
        assertThat(sentAsPredicted(trained).toString()).doesNotContain("activation gradients");
    }

    /** Resumed in another layout, in pieces, mirrored, and exported. */
    @ParameterizedTest(name = "{0}, {1}")
    @CsvSource(
            delimiter = '|',
            value = {
                "precision=bf16 | tensor=2",
                "precision=bf16 | data=2, zero.stage=3",
                "precision=float32 | tensor=2"
            })
    void frozenMatricesInBf16AreSavedAndRead(String device, String parallel) throws Exception {
        Training whole = halves("whole", device);
        Training first =
                halves("half", device)
                        .set("run.steps=2", "parallel={" + parallel + "}", "recovery.mirror=on");

        List<Double> losses = whole.complete().losses();
        assertThat(first.complete().peakBytes()).isEqualTo(planned(first));
        Trained ended =
                first.copy()
                        .resume()
                        .set("run.steps=4", "recovery.mirror=off")
                        .set("parallel={tensor=1, data=1, zero.stage=0}")
                        .complete();
        Cli verified = Cli.run("checkpoint", "verify", first.directory().toString());
        Cli exported =
                Cli.run(
                        "checkpoint",
                        "export",
                        first.directory().toString(),
                        "--output",
                        folder.resolve("merged/model.safetensors").toString());

        assertThat(verified.exitCode()).as(verified.err()).isEqualTo(ExitCode.OK);
        assertThat(exported.exitCode()).as(exported.err()).isEqualTo(ExitCode.OK);
        for (int step = 0; step < 4; step++) {
            assertThat(ended.losses().get(step)).isCloseTo(losses.get(step), within(1e-2));
        }
    }

    private Training halves(String name, String device) throws Exception {
        return training(name)
                .set("run.steps=4", "checkpoint.every=1", "pipeline.stages=2")
                .set("device={" + device + "}", "fine-tune={method=lora, frozen=bf16}");
    }

    /** The integers do not depend on the layout, nor on how often they were saved and read. */
    @ParameterizedTest(name = "{0}")
    @CsvSource(
            delimiter = '|',
            value = {"tensor=2", "data=2, zero.stage=1", "data=2, zero.stage=3", "context=2"})
    void frozenMatricesInIntegersAreSavedAndRead(String parallel) throws Exception {
        Training whole = integers("whole");
        Training first =
                integers("half")
                        .set("run.steps=2", "parallel={" + parallel + "}", "recovery.mirror=on");

        List<Double> losses = whole.complete().losses();
        assertThat(first.complete().peakBytes()).isEqualTo(planned(first));
        Map<String, List<Float>> begun = frozen(first, 2);
        Trained ended =
                first.copy()
                        .resume()
                        .set("run.steps=4", "recovery.mirror=off")
                        .set("parallel={tensor=1, data=1, context=1, zero.stage=0}")
                        .complete();

        assertThat(begun).isEqualTo(frozen(whole, 4));
        assertThat(frozen(first, 4)).isEqualTo(begun);
        for (int step = 0; step < 4; step++) {
            assertThat(ended.losses().get(step)).isCloseTo(losses.get(step), within(1e-4));
        }
    }

    private Training integers(String name) throws Exception {
        return training(name)
                .set("run.steps=4", "checkpoint.every=1", "pipeline.stages=2")
                .set("fine-tune={method=lora, frozen=int8}");
    }

    /** All that a checkpoint has of weights which are not trained. */
    private static Map<String, List<Float>> frozen(Training training, int step) {
        Path saved =
                training.directory().resolve("checkpoints").resolve("step-%06d".formatted(step));
        Map<String, List<Float>> frozen = new TreeMap<>();
        try (var reader = SavedCheckpoint.open(saved).read();
                Arena arena = Arena.ofConfined()) {
            for (TensorFacts each : reader.tensors()) {
                if (!each.name().contains("lora_")) {
                    assertThat(each.type()).as(each.name()).isEqualTo(StoredType.F32);
                    List<Float> values = new ArrayList<>();
                    for (float value : reader.read(each.name(), arena).orElseThrow().toFloats()) {
                        values.add(value);
                    }
                    frozen.put(each.name(), values);
                }
            }
        }
        assertThat(frozen).containsKeys("wte.weight", "wpe.weight", "h.0.attn.c_attn.weight");
        return frozen;
    }

    /** One of an order in two parts, one that recomputes, and one with a kind of kernels. */
    @ParameterizedTest(name = "{0}, {1}")
    @CsvSource(
            delimiter = '|',
            value = {
                "kind=zb-h1 | stages=4",
                "kind=1f1b, recompute=blocks | stages=2",
                "kind=seq1f1b, slices=2 | stages=2"
            })
    void besideIntegersBitsAreThoseOfOneStageAndMemoryIsAsPlanned(String order, String pipeline)
            throws Exception {
        String sliced = order.contains("slices") ? "kind=seq1f1b, slices=2" : "kind=1f1b";
        Trained alone =
                integers("alone").set("schedule={" + sliced + "}", "pipeline.stages=1").complete();
        Training training =
                integers("pipeline").set("schedule={" + order + "}", "pipeline={" + pipeline + "}");

        Trained trained = training.complete();

        assertThat(trained.lossBits()).isEqualTo(alone.lossBits());
        assertThat(trained.validationBits()).isEqualTo(alone.validationBits());
        assertThat(trained.peakBytes()).isEqualTo(planned(training));
    }

    @Test
    void aRunBesideIntegersGoesOnWithTheSameBits() throws Exception {
        Trained whole = integers("whole").complete();
        Training half = integers("half").set("run.steps=2");
        half.complete();

        Trained ended = half.copy().resume().set("run.steps=4").complete();

        assertThat(ended.lossBits()).isEqualTo(whole.lossBits());
        assertThat(ended.peakBytes()).isEqualTo(planned(half));
    }

    @ParameterizedTest
    @CsvSource({"bf16", "float32"})
    void aRunGoesOnWithTheSameBits(String precision) throws Exception {
        Trained whole = halves("whole", "precision=" + precision).complete();
        Training half = halves("half", "precision=" + precision).set("run.steps=2");
        half.complete();

        Trained ended = half.copy().resume().set("run.steps=4").complete();

        assertThat(ended.lossBits()).isEqualTo(whole.lossBits());
        assertThat(ended.peakBytes()).isEqualTo(planned(half));
    }

    /** What shards, context parts and replicas send is known before, where backwards end early. */
    @ParameterizedTest(name = "{0}, {1}, {2}")
    @CsvSource(
            delimiter = '|',
            value = {
                "method=lora, targets=[mlp.c_fc], freeze=[\"h.0.*\"] | tensor=2, sequence=true | kind=1f1b",
                "method=lora, freeze=[\"h.0.*\"] | tensor=2, sequence=true | kind=zb-h1",
                "freeze=[\"w*\", \"h.0.*\", \"h.1.ln_1.*\"] | tensor=2, sequence=true | kind=1f1b, recompute=full",
                "freeze=[\"w*\", \"h.0.*\", \"h.1.attn.*\"] | context=2 | kind=1f1b, recompute=full",
                "freeze=[\"w*\", \"h.0.*\", \"h.1.*\", \"h.2.*\", \"h.3.ln_*\"] | data=2, zero={stage=3, residency=layer} | kind=1f1b"
            })
    void trafficIsAsPredicted(String tuning, String parallel, String order) throws Exception {
        Training training =
                training("grid")
                        .set("fine-tune={" + tuning + "}", "parallel={" + parallel + "}")
                        .set("schedule={" + order + "}", "pipeline.stages=2");

        Trained trained = training.complete();

        sentAsPredicted(trained);
        assertThat(trained.peakBytes()).isEqualTo(planned(training));
    }

    /** The backward for the weights gathers the branches that it reads, or an op has done so. */
    @ParameterizedTest(name = "{0}, {1}")
    @CsvSource(
            delimiter = '|',
            value = {
                "method=lora | kind=zb-h1 | residency=layer, prefetch-layers=0",
                "method=lora, targets=[all-linear], dropout=0.1 | kind=zb-h1 | residency=layer, prefetch-layers=2",
                "method=lora, freeze=[\"h.1.*\", \"*.lora_B.weight\"] | kind=zb-v | residency=layer",
                "method=lora, freeze=[\"*.lora_A.weight\"], frozen=int8 | kind=zb-h1 | residency=layer",
                "method=lora, frozen=bf16 | kind=zb-h1 | residency=micro-batch",
                "method=lora | kind=zb-h1 | residency=pass",
                "method=lora | kind=zb-h1, recompute=blocks | residency=step"
            })
    void adaptersThatReplicasDivideAreThereWhenWeightsTurnComes(
            String tuning, String order, String residency) throws Exception {
        String zero = "parallel={data=2, zero={stage=3, " + residency + "}}";
        Training training =
                training("divided")
                        .set("fine-tune={" + tuning + "}", "pipeline.stages=2")
                        .set("schedule={" + order + "}", zero);
        Training whole =
                training("whole")
                        .set("fine-tune={" + tuning + "}", "pipeline.stages=2")
                        .set("schedule.kind=1f1b", "parallel={data=2, zero.stage=1}");

        Trained trained = training.complete();

        assertThat(trained.lossBits()).isEqualTo(whole.complete().lossBits());
        assertThat(trained.peakBytes()).isEqualTo(planned(training));
        sentAsPredicted(trained);
    }

    /** Of four blocks in a forward, one comes once more for the backward, not four. */
    @Test
    void blocksWithoutABackwardAreNotGatheredForOne() throws Exception {
        String zero = "parallel={data=2, zero={stage=3, residency=layer, prefetch-layers=1}}";
        Training all = training("all").set("pipeline.stages=1", zero);
        Training highest =
                training("highest")
                        .set("pipeline.stages=1", zero)
                        .set("fine-tune.freeze=[\"w*\", \"h.0.*\", \"h.1.*\", \"h.2.*\"]");

        List<Map<String, Long>> most = sentAsPredicted(all.complete());
        Trained trained = highest.complete();
        List<Map<String, Long>> least = sentAsPredicted(trained);

        assertThat(trained.peakBytes()).isEqualTo(planned(highest));
        long perStep = gathers(most) - gathers(least);
        int width = 32;
        long block = 12L * width * width + 13L * width;
        int microBatches = 2;
        assertThat(perStep).isEqualTo(3 * block / 2 * Float.BYTES * microBatches);
    }

    private static long gathers(List<Map<String, Long>> sent) {
        return sent.getFirst().getOrDefault("parameter gathers", 0L);
    }

    /** A mirror has what is trained, with its moments and gradients, and nothing else. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "method=lora, rank=2",
                "method=lora, rank=2, frozen=int8",
                "freeze=[\"w*\", \"h.0.*\", \"h.1.*\"]"
            })
    void mirrorsHoldWhatIsTrained(String tuning) throws Exception {
        Training without =
                training("without").set("fine-tune={" + tuning + "}", "pipeline.stages=2");
        Training with =
                training("with")
                        .set("fine-tune={" + tuning + "}", "pipeline.stages=2")
                        .set("recovery.mirror=on");

        Trained plain = without.complete();
        Trained mirrored = with.complete();

        assertThat(mirrored.lossBits()).isEqualTo(plain.lossBits());
        assertThat(mirrored.peakBytes()).isEqualTo(planned(with));
        if (tuning.contains("lora")) { // 2 x 2 of [32, 2] and [2, 96], aligned: state and blocks
            long trained = 2L * (32 * 2 + 2 * 96) * Float.BYTES;
            for (int rank = 0; rank < 2; rank++) {
                assertThat(mirrored.peakBytes().get(rank) - plain.peakBytes().get(rank))
                        .isEqualTo(4 * trained + 4 * trained);
            }
        }
    }

    /** By rank, what it sent in every step. */
    private static List<Map<String, Long>> sentAsPredicted(Trained trained) {
        List<Map<String, Long>> predicted = new ArrayList<>();
        for (JsonNode rank : trained.summary().get("ranks")) {
            predicted.add(byUse(rank.get("predictedSentBytes")));
        }
        for (List<JsonNode> step : trained.sentBytes()) {
            assertThat(step.stream().map(FrozenStagesRunTest::byUse).toList()).isEqualTo(predicted);
        }
        return predicted;
    }

    private static Map<String, Long> byUse(JsonNode bytes) {
        Map<String, Long> uses = new TreeMap<>();
        bytes.properties().forEach(use -> uses.put(use.getKey(), use.getValue().asLong()));
        uses.values().removeIf(sent -> sent == 0);
        return uses;
    }

    @Test
    void noGradientIsSentToAFrozenStageAndNoRoomIsHeldForOne() throws Exception {
        Training frozen =
                training("frozen")
                        .set("fine-tune.freeze=[\"w*\", \"h.0.*\", \"h.1.*\"]")
                        .set("pipeline={stages=2, partition=[2, 2]}", "schedule.kind=gpipe");
        Training full =
                training("full")
                        .set("pipeline={stages=2, partition=[2, 2]}", "schedule.kind=gpipe");

        Trained less = frozen.complete();
        Trained all = full.complete();
        Cli shown =
                Cli.run(
                        "schedule",
                        "show",
                        frozen.configuration().toString(),
                        "--set=pipeline={stages=2, partition=[2, 2]}",
                        "--set=model.layers=4",
                        "--set=fine-tune.freeze=[\"w*\", \"h.0.*\", \"h.1.*\"]");

        assertThat(shown.exitCode()).as(shown.err()).isEqualTo(ExitCode.OK);
        assertThat(sentAsPredicted(less).toString()).doesNotContain("activation gradients");
        assertThat(sentAsPredicted(all).toString()).contains("activation gradients");
        // one unit's activations instead of four, no gradients, no moments
        assertThat(less.peakBytes().getFirst()).isLessThan(all.peakBytes().getFirst() / 2);
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
