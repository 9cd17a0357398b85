package dev.penstock.runtime.model.layers;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;
import static org.assertj.core.api.Assertions.withinPercentage;

import dev.penstock.actors.collective.CollectiveForm;
import dev.penstock.actors.collective.TensorMesh;
import dev.penstock.actors.collective.TensorMesh.Kind;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.runtime.model.Golden;
import dev.penstock.runtime.model.Orders;
import dev.penstock.runtime.model.PipelineDriver;
import dev.penstock.runtime.model.ShardedPipelines;
import dev.penstock.runtime.model.TinyRuns;
import dev.penstock.runtime.model.shape.AdamWSettings;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.LearningRate;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.Precision;
import dev.penstock.runtime.model.shape.StageBudget;
import dev.penstock.runtime.model.shape.StagePartition;
import dev.penstock.runtime.model.stage.GptStageFactory;
import dev.penstock.runtime.model.stage.MeshTraffic;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;
import dev.penstock.schedules.lower.InsertRecompute;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Shards on a mesh compute what one device does, up to the order of sums. */
@Timeout(300)
class TensorMeshesTest {
    private static final DeviceSettings REFERENCE =
            DeviceSettings.DEFAULTS.withKind(DeviceSettings.Kind.REFERENCE);

    private static final List<Long> NO_RING =
            Collections.nCopies(TensorMesh.AXES, CollectiveForm.NEVER);

    static TensorMesh mesh(String kind) {
        return switch (kind) {
            case "2d" -> new TensorMesh(Kind.PLANE, 2, 2, 1);
            case "2.5d" -> new TensorMesh(Kind.LAYERS, 2, 2, 2);
            case "3d" -> new TensorMesh(Kind.CUBE, 2, 2, 2);
            default -> throw new IllegalArgumentException(kind);
        };
    }

    private static GptSettings settings(boolean tied, int stages) {
        ModelShape shape = ModelShape.gpt2(40, 8, 24, 2, 4, tied);
        return TinyRuns.settings(shape, stages, new BatchShape(4, 3, List.of(8), 4));
    }

    private static Schedule order(GptSettings settings) {
        return Orders.oneForwardOneBackward(settings.partition().stages(), 3, 1);
    }

    @ParameterizedTest(name = "{0}, tied {1}, {2} stages")
    @CsvSource({
        "2d, true, 1",
        "2d, true, 2",
        "2d, false, 4",
        "2.5d, true, 1",
        "2.5d, false, 2",
        "3d, true, 1",
        "3d, true, 2",
        "3d, false, 4",
    })
    void lossesAndGradientsAreThoseOfOneDevice(String kind, boolean tied, int stages) {
        GptSettings whole = settings(tied, stages);
        for (GptSettings each : List.of(whole, TinyRuns.recomputing(whole, Set.of(0, 1)))) {
            Schedule order = order(each);
            boolean again = !each.recomputedBlocks().isEmpty();
            for (Schedule run :
                    stages != 2
                            ? List.of(order)
                            : again
                                    ? List.of(Orders.split(order, 1))
                                    : List.of(order, InsertRecompute.into(order))) {
                try (PipelineDriver one =
                                new PipelineDriver(
                                        each, run, TinyRuns.tokens(40), TinyRuns.roughWeights());
                        ShardedPipelines all =
                                new ShardedPipelines(
                                        REFERENCE,
                                        TinyRuns.meshed(each, mesh(kind)),
                                        run,
                                        TinyRuns.tokens(40),
                                        TinyRuns.roughWeights())) {
                    assertClose(all.state(), one.state(), 0);
                    for (int step = 1; step <= 2; step++) {
                        assertThat(all.evaluate(step)).isCloseTo(one.evaluate(step), within(1e-5));
                        assertThat(all.train(step)).isCloseTo(one.train(step), within(1e-5));
                        assertClose(all.gradients(), one.gradients(), 1e-5);
                    }
                }
            }
        }
    }

    @ParameterizedTest(name = "{0}, tied {1}, {2} stages")
    @CsvSource({"2d, true, 1", "2.5d, false, 2", "3d, true, 2"})
    void meshesFollowTheGoldenRun(String kind, boolean tied, int stages) {
        TensorMesh mesh = mesh(kind);
        int sequences = mesh.sequenceParts();
        int microBatches = 4 / sequences;
        try (Golden golden = new Golden(tied)) {
            GptSettings settings =
                    GptSettings.of(
                            golden.shape(),
                            StagePartition.byFlops(golden.shape(), stages),
                            new BatchShape(sequences, microBatches, List.of(16), 8),
                            Precision.FLOAT32,
                            new AdamWSettings(
                                    LearningRate.constant(0.01), 0.9, 0.95, 1e-8, 0.1, true),
                            42);
            List<Double> losses = golden.numbers("loss_fp64_accum4");
            try (ShardedPipelines all =
                    new ShardedPipelines(
                            REFERENCE,
                            TinyRuns.meshed(settings, mesh),
                            Orders.oneForwardOneBackward(stages, microBatches, 1),
                            golden.batches(sequences),
                            golden.initial())) {
                for (int step = 1; step <= losses.size(); step++) {
                    assertThat(all.train(step))
                            .as("step %d", step)
                            .isCloseTo(losses.get(step - 1), within(2e-4));
                    if (step == 1) {
                        assertThat(all.gradients().keySet())
                                .isEqualTo(golden.firstGradients().keySet());
                        Map<String, float[]> found = all.gradients();
                        golden.firstGradients()
                                .forEach((name, g) -> assertClose(name, found.get(name), g, 1e-5));
                    }
                }
            }
        }
    }

    /**
     * Optimus reports micro-batches 8 times as large as Megatron's on 64 GPUs of 16 GiB (section
     * 5), with blocks that run again. By the memory that is planned, which is what a run holds:
     */
    @Test
    void sixtyFourShardsTakeALargerMicroBatchOnAMesh() {
        ModelShape shape = ModelShape.gpt2(51200, 512, 3072, 24, 64, true);
        var mesh = new TensorMesh(Kind.PLANE, 8, 8, 1);

        int line = largest(shape, s -> TinyRuns.sharded(s, 64));
        int plane = largest(shape, s -> TinyRuns.meshed(s, mesh));

        assertThat(List.of(line, plane)).isEqualTo(List.of(80, 3072)); // docs/parallel.md says so
    }

    /** Returns the most sequences of a micro-batch, in eights, that 16 GiB hold. */
    private static int largest(ModelShape shape, UnaryOperator<GptSettings> layout) {
        long limit = 16L << 30;
        int fits = 0;
        for (int step = 1 << 10; step > 0; step /= 2) {
            int sequences = 8 * (fits + step);
            GptSettings whole =
                    TinyRuns.settings(shape, 1, BatchShape.unsliced(sequences, 1, 512, 512));
            GptSettings again =
                    TinyRuns.recomputing(
                            whole, IntStream.range(0, 24).boxed().collect(Collectors.toSet()));
            long bytes;
            try {
                bytes =
                        new GptStageFactory(
                                        layout.apply(again),
                                        List.of(new StageBudget(1, List.of(1), 1, 1)),
                                        TinyRuns.tokens(51200),
                                        (_, _, _) -> true)
                                .predictedMemory(0, new RankPlace(0, 0, 0, 0))
                                .total();
            } catch (ArithmeticException _) { // more elements of a tensor than an int can count
                bytes = Long.MAX_VALUE;
            }
            fits += bytes <= limit ? step : 0;
        }
        return 8 * fits;
    }

    @ParameterizedTest(name = "{0}")
    @CsvSource({"2d", "2.5d", "3d"})
    void sentIsWhatIsPredicted(String kind) {
        GptSettings whole = TinyRuns.meshed(settings(true, 2), mesh(kind));
        for (GptSettings each : List.of(whole, TinyRuns.recomputing(whole, Set.of(1)))) {
            Schedule order = order(each);
            for (Schedule run :
                    List.of(order, Orders.split(order, 1), InsertRecompute.into(order))) {
                try (ShardedPipelines all =
                        new ShardedPipelines(
                                REFERENCE,
                                each,
                                run,
                                TinyRuns.tokens(40),
                                TinyRuns.roughWeights())) {
                    all.train(1);
                    for (int shard = 0; shard < each.grid().tensor(); shard++) {
                        long predicted = 0;
                        for (int rank = 0; rank < 2; rank++) {
                            predicted +=
                                    new MeshTraffic(
                                                    each,
                                                    new RankPlace(rank, shard, 0, 0),
                                                    run.programs().get(rank).ops(),
                                                    NO_RING)
                                            .shards();
                        }
                        assertThat(all.sentBytes(shard)).isEqualTo(predicted);
                    }
                }
            }
        }
    }

    /**
     * Of a block of width d, its forward and backward, with b s rows: 2d sends 3 (q-1)/q^2 (7 b s d
     * + 12 d^2) elements, which is Optimus' table 1 but for its trees; 2.5d the same of a plane's
     * rows; 3d has three operands in each of three products, 3 (q-1)/q^3 (16 b s d + 12 d^2).
     */
    @ParameterizedTest(name = "{0}")
    @CsvSource({"2d", "2.5d", "3d"})
    void aBlockSendsWhatItsFormulaSays(String kind) {
        TensorMesh mesh = mesh(kind);
        ModelShape shape = ModelShape.gpt2(64, 128, 256, 4, 4, false);
        GptSettings settings =
                TinyRuns.meshed(
                        TinyRuns.settings(shape, 6, new BatchShape(8, 1, List.of(128), 128)), mesh);
        assertThat(settings.partition().layersPerStage()).contains(1);
        int stage = settings.partition().layersPerStage().indexOf(1);
        var unit = new WorkUnit(stage, 0, 0);
        RankPlace place = new RankPlace(stage, 1, 0, 0);

        long sent =
                new MeshTraffic(
                                settings,
                                place,
                                List.of(new Op.Forward(unit), new Op.Backward(unit)),
                                NO_RING)
                        .shards();

        double rows = 8.0 * 128;
        double d = 256;
        double q = 2;
        double elements =
                switch (kind) {
                    case "2d" -> 3 * (q - 1) / (q * q) * (7 * rows * d + 12 * d * d);
                    case "2.5d" ->
                            3 * (q - 1) / (q * q) * (7 * rows * d / 2 + 12 * d * d)
                                    + 12 * d * d / (q * q); // the sum of dW over two planes
                    default -> 3 * (q - 1) / (q * q * q) * (16 * rows * d + 12 * d * d);
                };
        assertThat((double) sent).isCloseTo(4 * elements, withinPercentage(1));
    }

    private static void assertClose(
            Map<String, float[]> actual, Map<String, float[]> expected, double tolerance) {
        assertThat(actual.keySet()).isEqualTo(expected.keySet());
        expected.forEach(
                (name, values) -> {
                    double[] doubles = new double[values.length];
                    for (int i = 0; i < values.length; i++) {
                        doubles[i] = values[i];
                    }
                    assertClose(name, actual.get(name), doubles, tolerance);
                });
    }

    /** Relative in the L2 norm. */
    private static void assertClose(
            String name, float @Nullable [] actual, double[] expected, double tolerance) {
        float[] values = Objects.requireNonNull(actual, name);
        assertThat(values).as(name).hasSameSizeAs(expected);
        double apart = 0;
        double norm = 0;
        for (int i = 0; i < expected.length; i++) {
            apart += Math.pow(values[i] - expected[i], 2);
            norm += expected[i] * expected[i];
        }
        assertThat(Math.sqrt(apart)).as(name).isLessThanOrEqualTo(tolerance * Math.sqrt(norm));
    }
}
