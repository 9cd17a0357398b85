package dev.penstock.runtime.model;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.actors.spi.NonFiniteException;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.gpu.EmulatedGpus;
import dev.penstock.runtime.model.parameters.ParameterSource;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.StageBudget;
import dev.penstock.runtime.model.stage.GptStage;
import dev.penstock.runtime.model.stage.GptStageFactory;
import dev.penstock.schedules.ir.WorkUnit;
import java.lang.foreign.ValueLayout;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class NonFinitePlacesTest {
    private static final GptSettings SETTINGS =
            TinyRuns.settings(TinyRuns.UNTIED, 3, TinyRuns.batch(List.of(8, 8)));

    @ParameterizedTest
    @CsvSource({
        "wpe.weight, 'stage 0', 'micro-batch 0, slice 1: input of h.0.ln_1 (forward)'",
        "h.1.attn.c_proj.weight, 'stage 1', 'micro-batch 0, slice 0: input of h.1.ln_2 (forward)'",
        "h.1.mlp.c_fc.bias, 'stage 2', 'input of h.2.ln_1 (forward)'",
        "h.2.mlp.c_proj.bias, 'stage 2', 'input of ln_f (forward)'",
        "lm_head.weight, 'stage 2', 'loss is not finite'"
    })
    void aBrokenWeightIsNamedWhereItFirstShows(String parameter, String stage, String place) {
        expectNamed(
                parameter,
                stage,
                place,
                DeviceSettings.DEFAULTS.withKind(DeviceSettings.Kind.REFERENCE));
    }

    /** Which looks for it behind the calls. */
    @ParameterizedTest
    @CsvSource({
        "wpe.weight, 'stage 0', 'micro-batch 0, slice 1: input of h.0.ln_1 (forward)'",
        "h.2.mlp.c_proj.bias, 'stage 2', 'input of ln_f (forward)'",
        "lm_head.weight, 'stage 2', 'loss is not finite'"
    })
    void aGpuNamesTheSamePlace(String parameter, String stage, String place) {
        EmulatedGpus.require();
        DeviceSettings gpu = DeviceSettings.DEFAULTS.withKind(DeviceSettings.Kind.CUDA);
        expectNamed(parameter, stage, place, gpu.withGraphs(true));
    }

    private static void expectNamed(
            String parameter, String stage, String place, DeviceSettings device) {
        try (PipelineDriver pipeline = pipelineWith(parameter, Float.NaN, device)) {

            assertThatThrownBy(() -> pipeline.train(1))
                    .isInstanceOf(NonFiniteException.class)
                    .hasMessageContaining("step 1")
                    .hasMessageContaining(stage)
                    .hasMessageContaining(place);
        }
    }

    @Test
    void aBrokenGradientIsNamedByTheFirstSumItEnters() {
        GptSettings settings = TinyRuns.settings(TinyRuns.UNTIED, 3, TinyRuns.batch(List.of(16)));
        GptStageFactory factory =
                new GptStageFactory(
                        settings,
                        Collections.nCopies(3, StageBudget.everything(settings.batch())),
                        TinyRuns.tokens(37),
                        TinyRuns.roughWeights());
        WorkUnit unit = new WorkUnit(1, 2, 0);
        try (Device device =
                        Devices.open(
                                DeviceSettings.DEFAULTS.withKind(DeviceSettings.Kind.REFERENCE));
                DeviceScope boundaries = device.memory().child("boundaries", Long.MAX_VALUE);
                GptStage middle = factory.create(1, RankPlace.single(1), device)) {
            Tensor input = boundaries.tensor("input", DType.F32, 32, 24);
            Tensor output = boundaries.tensor("output", DType.F32, 32, 24);
            Tensor gradient = boundaries.tensor("gradient", DType.F32, 32, 24);
            gradient.segment().setAtIndex(ValueLayout.JAVA_FLOAT, 77, Float.POSITIVE_INFINITY);
            middle.beginStep(StepKind.TRAIN, 9);
            middle.forward(unit, input, output);

            assertThatThrownBy(() -> middle.backward(unit, input, gradient, output))
                    .isInstanceOf(NonFiniteException.class)
                    .hasMessageContaining(
                            "step 9, stage 1, micro-batch 2, slice 0: gradient of"
                                    + " h.1.mlp.c_proj.bias (backward)");
        }
    }

    /** A pipeline whose named parameter has one bad element, at three quarters of it. */
    private static PipelineDriver pipelineWith(String parameter, float bad, DeviceSettings device) {
        ParameterSource source =
                (name, piece, destination) -> {
                    boolean filled = TinyRuns.roughWeights().fill(name, piece, destination);
                    if (name.equals(parameter)) {
                        long elements = destination.byteSize() / Float.BYTES;
                        destination.setAtIndex(ValueLayout.JAVA_FLOAT, elements * 3 / 4, bad);
                    }
                    return filled;
                };
        return new PipelineDriver(
                Devices.open(device), SETTINGS, Orders.gpipe(3, 3, 2), TinyRuns.tokens(37), source);
    }
}
