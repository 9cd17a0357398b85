package dev.penstock.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import com.fasterxml.jackson.databind.JsonNode;
import dev.penstock.actors.collective.TensorMesh;
import dev.penstock.actors.spi.MemoryUse;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.runtime.checkpoint.CheckpointFolders;
import dev.penstock.runtime.checkpoint.SavedCheckpoint;
import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.model.Orders;
import dev.penstock.runtime.model.ShardedPipelines;
import dev.penstock.runtime.model.TinyRuns;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.report.MemoryPlan;
import java.io.IOException;
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
import org.junit.jupiter.params.provider.ValueSource;

/** Runs whose tensor shards lie on a mesh, beside one device and over the data plane. */
class MeshRunTest {
    private static final String PLANE = "parallel={tensor=4, tensor-mesh=[2, 2]}";
    private static final String LAYERS = "parallel={tensor=8, tensor-mesh=[2, 2, 2]}";
    private static final String CUBE = "parallel={tensor=8, tensor-mesh=[2, 2, 2], tensor-kind=3d}";

    @TempDir private Path folder;
    private int runs;

    private Training run(String... settings) throws IOException {
        return Training.onText(Files.createDirectories(folder.resolve("run " + runs++)))
                .set("run.steps=2", "evaluation={every=2, batches=1}", "checkpoint.every=0")
                .set("batch={sequences=8, micro-batches=2}", "optimizer.clip-norm=0.5")
                .set(settings);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                LAYERS,
                CUBE,
                "parallel={tensor=4, tensor-mesh=[2, 2], data=2}",
            })
    void lossesAndNormsAreThoseOfOneDevice(String layout) throws IOException {
        Trained one = run("pipeline.stages=1").complete();
        Training meshed = run("pipeline.stages=2", layout, "schedule={kind=zb-h1, recompute=[0]}");

        Trained ended = meshed.complete();

        assertClose(ended, one);
        assertThat(sentAsPredicted(ended).toString()).contains("tensor sums");
        assertThat(ended.peakBytes()).isEqualTo(planned(meshed));
    }

    @Test
    void overTheDataPlaneTheBitsAreThoseInSharedMemory() throws IOException {
        Trained shared = small().complete();

        Trained apart = RanksInOneJvm.complete(small());

        assertThat(apart.lossBits()).isEqualTo(shared.lossBits());
        assertThat(sentAsPredicted(apart)).isEqualTo(sentAsPredicted(shared));
    }

    private Training small() throws IOException {
        return run("pipeline.stages=1", PLANE)
                .set("run.steps=1", "evaluation.every=0", "model.layers=1")
                .set("batch={sequences=2, micro-batches=1}");
    }

    /** Activations of a rank are a quarter of one device's, all but what is held of every row. */
    @Test
    void fourRanksEachHoldAQuarter() throws IOException {
        long one = activations("parallel.tensor=1");
        long line = activations("parallel.tensor=4");
        long plane = activations(PLANE);

        assertThat((double) plane).isCloseTo(one / 4.0, within(0.01 * one / 4));
        assertThat((double) line).isCloseTo(one * (4 / 16.0 + 12 / 16.0 / 4), within(0.1 * line));
    }

    private long activations(String layout) throws IOException {
        Training training = run("pipeline.stages=1", "model.width=256", "model.heads=4", layout);
        try (RunAssembly assembly = assembly(training)) {
            return assembly.plannedMemory().getFirst().proved().stream()
                    .filter(
                            each ->
                                    each.use().equals(MemoryUse.ACTIVATIONS)
                                            || each.use().equals(MemoryUse.KEY_VALUES))
                    .mapToLong(MemoryUse::peakBytes)
                    .sum();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {PLANE, CUBE, "parallel.tensor=2"})
    void checkpointsGoBetweenAllLayouts(String layout) throws IOException {
        Training saved =
                run("run.steps=1", "checkpoint.every=1", "pipeline.stages=1", layout)
                        .set("evaluation.every=0", "batch={sequences=4, micro-batches=1}");
        saved.complete();
        Path step = CheckpointFolders.of(saved.directory().resolve("checkpoints"), 1);

        Map<String, float[]> expected = loaded(step, 1, TensorMesh.NONE);

        assertThat(SavedCheckpoint.open(step).verify()).isEmpty();
        assertThat(expected.get("optimizer.v.h.1.mlp.c_fc.bias")).isNotEqualTo(new float[128]);
        for (TensorMesh mesh :
                List.of(
                        new TensorMesh(TensorMesh.Kind.PLANE, 2, 2, 1),
                        new TensorMesh(TensorMesh.Kind.LAYERS, 2, 2, 2),
                        new TensorMesh(TensorMesh.Kind.CUBE, 2, 2, 2))) {
            assertSame(loaded(step, mesh.shards(), mesh), expected);
        }
        assertSame(loaded(step, 2, TensorMesh.NONE), expected);
    }

    @Test
    void aRunContinuesOnAnotherMesh() throws IOException {
        Training first =
                run("pipeline.stages=2", PLANE, "checkpoint.every=1", "run.steps=1")
                        .set("optimizer.schedule=constant", "evaluation.every=0");
        first.complete();
        Trained whole =
                run("pipeline.stages=1", "optimizer.schedule=constant", "evaluation.every=0")
                        .complete();

        Trained ended = first.copy().resume().set("run.steps=2", CUBE).complete();

        assertThat(ended.losses().getLast()).isCloseTo(whole.losses().getLast(), within(1e-5));
    }

    private static Map<String, float[]> loaded(Path step, int shards, TensorMesh mesh)
            throws IOException {
        ModelShape shape = ModelShape.gpt2(256, 32, 32, 2, 2, true);
        GptSettings settings = TinyRuns.settings(shape, 1, new BatchShape(4, 1, List.of(32), 16));
        GptSettings laidOut =
                mesh.isThere()
                        ? TinyRuns.meshed(settings, mesh)
                        : TinyRuns.sharded(settings, shards);
        try (var reader = SavedCheckpoint.open(step).read();
                var all =
                        new ShardedPipelines(
                                DeviceSettings.DEFAULTS.withKind(DeviceSettings.Kind.REFERENCE),
                                laidOut,
                                Orders.oneForwardOneBackward(1, 1, 1),
                                TinyRuns.tokens(256),
                                reader::fill)) {
            return all.state();
        }
    }

    private static void assertSame(Map<String, float[]> actual, Map<String, float[]> expected) {
        assertThat(actual.keySet()).isEqualTo(expected.keySet());
        expected.forEach((name, values) -> assertThat(actual.get(name)).as(name).isEqualTo(values));
    }

    @Test
    void whatAMeshDoesNotAllowIsToldAtOnce() throws IOException {
        Trained refused =
                run("pipeline.stages=2")
                        .set(
                                "parallel={tensor=4, tensor-mesh=[2, 2], sequence=true, context=2}",
                                "schedule={kind=seq1f1b, slices=2}",
                                "model.dropout=0.1",
                                "model.vocabulary=257",
                                "recovery.mirror=on",
                                "pipeline.partition=measured",
                                "batch={sequences=4, micro-batches=4}")
                        .run();
        Trained flat = run("parallel={tensor=6, tensor-mesh=[2, 3]}").run();

        assertThat(refused.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(refused.err())
                .contains("rows are divided already")
                .contains("its rows are whole sequences")
                .contains("what is dropped is drawn for whole rows")
                .contains("a multiple of 2 tokens, which parallel.tensor-mesh = [2, 2] divides")
                .contains("a multiple of 2 sequences of a micro-batch")
                .contains("mirrors copy what shards on a line hold")
                .contains("[] with this pipeline.partition: no other plan is laid out on meshes")
                .doesNotContain("\tat ");
        assertThat(flat.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(flat.err()).contains("[q, q] for 2d").contains("[2, 3]");
    }

    private static void assertClose(Trained actual, Trained expected) {
        assertThat(actual.losses()).hasSameSizeAs(expected.losses());
        for (int step = 0; step < expected.losses().size(); step++) {
            assertThat(actual.losses().get(step))
                    .isCloseTo(expected.losses().get(step), within(1e-5));
            double norm = expected.gradientNorms().get(step);
            assertThat(actual.gradientNorms().get(step)).isCloseTo(norm, within(1e-5 * norm));
        }
    }

    /** By rank, what it sent in every step. */
    private static List<Map<String, Long>> sentAsPredicted(Trained trained) {
        List<Map<String, Long>> predicted = new ArrayList<>();
        for (JsonNode rank : trained.summary().get("ranks")) {
            predicted.add(byUse(rank.get("predictedSentBytes")));
        }
        for (List<JsonNode> step : trained.sentBytes()) {
            assertThat(step.stream().map(MeshRunTest::byUse).toList()).isEqualTo(predicted);
        }
        return predicted;
    }

    private static Map<String, Long> byUse(JsonNode bytes) {
        Map<String, Long> uses = new TreeMap<>();
        bytes.properties().forEach(use -> uses.put(use.getKey(), use.getValue().asLong()));
        uses.values().removeIf(sent -> sent == 0);
        return uses;
    }

    private RunAssembly assembly(Training training) throws IOException {
        return RunAssembly.of(
                ConfigLoader.loadWithOrigins(training.configuration(), training.settings()),
                new RunOptions(
                        "planned",
                        Files.createDirectories(folder.resolve("planned " + runs++)),
                        Optional.empty(),
                        Optional.empty(),
                        Optional.empty(),
                        false));
    }

    private List<Long> planned(Training training) throws IOException {
        try (RunAssembly assembly = assembly(training)) {
            return assembly.plannedMemory().stream().map(MemoryPlan::total).toList();
        }
    }
}
