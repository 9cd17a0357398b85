package dev.penstock.runtime.model.layers;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;
import static org.assertj.core.api.Assertions.withinPercentage;

import dev.penstock.actors.collective.CollectiveForm;
import dev.penstock.actors.collective.TensorMesh;
import dev.penstock.actors.collective.TensorMesh.Kind;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.runtime.model.Orders;
import dev.penstock.runtime.model.PipelineDriver;
import dev.penstock.runtime.model.ShardedPipelines;
import dev.penstock.runtime.model.TinyRuns;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.ModelShape;
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
        "2d, false, 1",
        "2d, true, 2",
        "2d, false, 4",
        "2.5d, true, 1",
        "2.5d, true, 2",
        "2.5d, false, 2",
        "3d, true, 1",
        "3d, true, 2",
        "3d, false, 2",
    })
    void lossesAndGradientsAreThoseOfOneDevice(String kind, boolean tied, int stages) {
        GptSettings whole = settings(tied, stages);
        for (GptSettings each : List.of(whole, TinyRuns.recomputing(whole, Set.of(0, 1)))) {
            Schedule order = order(each);
            boolean again = each != whole;
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
     * Of a block of width d, its forward and backward, with b s rows: 2d sends 3 (q-1)/q^2 (7 b s d +
     * 12 d^2) elements, which is Optimus' table 1 but for its trees; 2.5d the same of a plane's rows;
     * 3d has three operands in each of three products, 3 (q-1)/q^3 (16 b s d + 12 d^2).
     */
    @ParameterizedTest(name = "{0}")
    @CsvSource({"2d", "2.5d", "3d"})
    void aBlockSendsWhatItsFormulaSays(String kind) {
        TensorMesh mesh = mesh(kind);
        ModelShape shape = ModelShape.gpt2(64, 128, 256, 4, 4, false);
        GptSettings settings =
                TinyRuns.meshed(
                        TinyRuns.settings(shape, 6, new BatchShape(8, 1, List.of(128), 128)),
                        mesh);
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
                    float[] found = Objects.requireNonNull(actual.get(name));
                    assertThat(found).as(name).hasSameSizeAs(values);
                    double apart = 0;
                    double norm = 0;
                    for (int i = 0; i < values.length; i++) {
                        apart += Math.pow(values[i] - found[i], 2);
                        norm += Math.pow(values[i], 2);
                    }
                    assertThat(Math.sqrt(apart))
                            .as(name)
                            .isLessThanOrEqualTo(tolerance * Math.sqrt(norm));
                });
    }
}
