package dev.penstock.runtime.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.actors.spi.StepKind;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.runtime.data.BatchSource;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.stage.TextClassifier;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Logits of encoders, which nothing generates from, and the weights that golden runs end with. */
class GoldenEncoderTest {
    static Stream<Arguments> models() {
        return Stream.of("bert-post-ln", "bert-pre-ln")
                .flatMap(
                        family ->
                                Stream.of(DeviceSettings.Kind.REFERENCE, DeviceSettings.Kind.CPU)
                                        .map(kind -> Arguments.of(family, kind)));
    }

    @ParameterizedTest(name = "{0} on {1}")
    @MethodSource("models")
    void logitsAreTheGoldenOnes(String family, DeviceSettings.Kind kind) {
        var golden = new GoldenFamily(family);
        double[] expected = golden.logits();
        int vocabulary = golden.shape().vocabulary();
        try (Device device = Devices.open(DeviceSettings.DEFAULTS.withKind(kind).withThreads(2));
                TextClassifier encoder =
                        TextClassifier.build(
                                golden.shape(), 1, device, first(golden), golden.initial())) {
            for (int token = 0; token < GoldenFamily.CONTEXT; token++) {
                float[] logits = encoder.logits(0, token)[0];
                for (int v = 0; v < vocabulary; v++) {
                    assertThat((double) logits[v])
                            .as("token %d of the vocabulary at position %d", v, token)
                            .isCloseTo(expected[token * vocabulary + v], within(1e-5));
                }
            }
        }
    }

    /** The golden run's first sequence, of which every token counts. */
    private static BatchSource first(GoldenFamily golden) {
        return new BatchSource() {
            @Override
            public boolean inPlace() {
                return true;
            }

            @Override
            public void read(StepKind kind, long step, int microBatch, int[] tokens) {
                System.arraycopy(golden.firstSequence(), 0, tokens, 0, GoldenFamily.CONTEXT);
            }
        };
    }

    /** All but the biases of keys, whose gradients are rounding alone. */
    @ParameterizedTest(name = "{0} on {1}")
    @MethodSource("models")
    void finalWeightsAreTheGoldenOnes(String family, DeviceSettings.Kind kind) {
        var golden = new GoldenFamily(family);
        var batch = new BatchShape(2, 2, List.of(GoldenFamily.CONTEXT), 8);
        Device device = Devices.open(DeviceSettings.DEFAULTS.withKind(kind).withThreads(2));
        try (var pipeline =
                new PipelineDriver(
                        device,
                        GoldenFamilyTest.settings(golden, 2, batch),
                        Orders.oneForwardOneBackward(2, 2, 1),
                        golden.batches(2),
                        golden.initial())) {
            for (int step = 1; step <= GoldenFamily.STEPS; step++) {
                pipeline.train(step);
            }
            Map<String, double[]> found = golden.asPublished(pipeline.state());
            Map<String, double[]> expected = golden.finalWeights();
            assertThat(found.keySet()).containsExactlyInAnyOrderElementsOf(expected.keySet());
            expected.forEach(
                    (name, tensor) -> {
                        if (!name.endsWith("key.bias")) {
                            assertClose(name, Objects.requireNonNull(found.get(name)), tensor);
                        }
                    });
        }
    }

    private static void assertClose(String name, double[] found, double[] expected) {
        double apart = 0;
        double size = 0;
        for (int i = 0; i < expected.length; i++) {
            apart += Math.pow(found[i] - expected[i], 2);
            size += Math.pow(expected[i], 2);
        }
        assertThat(Math.sqrt(apart)).as(name).isLessThan(1e-4 * Math.sqrt(size));
    }
}
