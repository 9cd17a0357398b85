package dev.penstock.runtime.model;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.BlockDesign;
import dev.penstock.runtime.model.shape.ModelShape;
import java.nio.FloatBuffer;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Layers that are told one by one, beside those of the family's own kind. */
class UnlikeLayersTest {
    private static final int CONTEXT = 64;

    private static ModelShape windows(ModelShape shape, List<Integer> windows) {
        BlockDesign block = shape.block();
        return new ModelShape(
                shape.vocabulary(),
                shape.context(),
                shape.width(),
                shape.layers(),
                new BlockDesign(
                        block.norm(),
                        block.heads(),
                        block.biases(),
                        block.activation(),
                        block.hidden(),
                        windows),
                shape.positions(),
                shape.tied());
    }

    private static List<Integer> all(ModelShape shape, int window) {
        return Collections.nCopies(shape.layers(), window);
    }

    @ParameterizedTest(name = "{0} on {1}")
    @CsvSource({"gpt2-variants, CPU", "gpt2-variants, REFERENCE", "llama, CPU", "retnet, CPU"})
    void aWindowOfTheWholeSequenceGivesTheBitsOfNone(String family, DeviceSettings.Kind kind) {
        ModelShape shape = TinyFamilies.shape(family);
        ModelShape dense = windows(shape, all(shape, BlockDesign.ALL));
        for (List<Integer> slices : List.of(List.of(64), List.of(16, 48))) {
            Map<String, Object> bits = bits(dense, slices, kind);

            assertThat(bits(windows(shape, all(shape, CONTEXT)), slices, kind)).isEqualTo(bits);
            assertThat(bits(windows(shape, all(shape, 3 * CONTEXT)), slices, kind)).isEqualTo(bits);
            assertThat(bits(windows(shape, all(shape, CONTEXT - 1)), slices, kind))
                    .isNotEqualTo(bits);
        }
    }

    @Test
    void retentionInEveryLayerIsTheFamilysOwnModel() {
        ModelShape shape = TinyFamilies.shape("retnet");

        assertThat(windows(shape, all(shape, BlockDesign.RETAINED))).isEqualTo(shape);
    }

    private static Map<String, Object> bits(
            ModelShape shape, List<Integer> slices, DeviceSettings.Kind kind) {
        var batch = new BatchShape(2, 2, slices, 16);
        DeviceSettings device = DeviceSettings.DEFAULTS.withKind(kind).withThreads(1);
        try (var pipeline =
                new PipelineDriver(
                        Devices.open(device),
                        TinyRuns.settings(shape, 1, batch),
                        Orders.oneForwardOneBackward(1, 2, slices.size()),
                        TinyRuns.tokens(shape.vocabulary()),
                        TinyRuns.roughWeights())) {
            Map<String, Object> outcome = new TreeMap<>();
            outcome.put("loss", pipeline.train(1));
            pipeline.gradients().forEach((name, g) -> outcome.put(name, FloatBuffer.wrap(g)));
            return outcome;
        }
    }
}
