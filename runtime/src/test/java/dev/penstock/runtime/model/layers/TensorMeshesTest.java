package dev.penstock.runtime.model.layers;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.actors.collective.TensorMesh;
import dev.penstock.actors.collective.TensorMesh.Kind;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.runtime.model.Orders;
import dev.penstock.runtime.model.PipelineDriver;
import dev.penstock.runtime.model.ShardedPipelines;
import dev.penstock.runtime.model.TinyRuns;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.lower.InsertRecompute;
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
            for (Schedule run :
                    List.of(order, Orders.split(order, 1), InsertRecompute.into(order))) {
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
