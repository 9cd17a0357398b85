package dev.penstock.runtime.model.stage;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.StageMirror;
import dev.penstock.actors.spi.TrainedState;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.runtime.model.Orders;
import dev.penstock.runtime.model.PipelineDriver;
import dev.penstock.runtime.model.TinyRuns;
import dev.penstock.runtime.model.parameters.ParameterSource;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.Precision;
import dev.penstock.runtime.model.shape.StageBudget;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class GptMirrorTest {
    private static final int STEPS = 4;

    /** On real devices, one for the pipeline and another for the mirrors. */
    @ParameterizedTest
    @CsvSource({
        "1, true, FLOAT32, CPU",
        "3, true, FLOAT32, CPU",
        "3, false, FLOAT32, CPU",
        "2, true, BF16, CPU",
        "2, true, FLOAT32, REFERENCE"
    })
    void aMirrorIsItsStageBitForBitAfterEveryStep(
            int stages, boolean tied, Precision precision, DeviceSettings.Kind kind) {
        GptSettings settings = settings(stages, tied, precision);
        DeviceSettings devices = DeviceSettings.DEFAULTS.withKind(kind);
        try (Device first = Devices.open(devices);
                Device second = Devices.open(devices);
                PipelineDriver pipeline = driver(first, settings)) {
            GptStageFactory factory = factory(settings);
            List<StageMirror> mirrors =
                    pipeline.stages().stream()
                            .map(
                                    stage ->
                                            factory.mirror(
                                                    stage.stage(),
                                                    RankPlace.single(stage.stage()),
                                                    second))
                            .toList();
            pipeline.beforeUpdates(
                    (step, clip) -> {
                        for (StageMirror mirror : mirrors) {
                            copy(
                                    pipeline.stages().get(mirror.stage()).trained().gradients(),
                                    mirror.trained().gradients());
                            mirror.update(step, clip);
                        }
                    });
            for (StageMirror mirror : mirrors) {
                assertThat(bits(mirror.trained()))
                        .as("stage %d at the start", mirror.stage())
                        .isEqualTo(bits(pipeline.stages().get(mirror.stage()).trained()));
            }
            for (int step = 1; step <= STEPS; step++) {
                pipeline.train(step);
                for (StageMirror mirror : mirrors) {
                    assertThat(bits(mirror.trained()))
                            .as("stage %d after step %d", mirror.stage(), step)
                            .isEqualTo(bits(pipeline.stages().get(mirror.stage()).trained()));
                }
            }
            mirrors.forEach(StageMirror::close);
        }
    }

    /** The stages that take over multiply with BF16 copies of what they were given. */
    @ParameterizedTest
    @CsvSource({"FLOAT32", "BF16"})
    void stagesThatStartFromMirrorsRepeatTheSteps(Precision precision) {
        GptSettings settings = settings(2, true, precision);
        DeviceSettings cpu = DeviceSettings.DEFAULTS.withKind(DeviceSettings.Kind.CPU);
        try (PipelineDriver original = driver(Devices.open(cpu), settings);
                PipelineDriver successor =
                        driver(Devices.open(cpu), settings, TinyRuns.roughWeights())) {
            original.train(1);
            original.train(2);
            for (int stage = 0; stage < 2; stage++) {
                TrainedState to = successor.stages().get(stage).trained();
                copy(original.stages().get(stage).trained().tensors(), to.tensors());
                to.replaced();
            }

            for (int step = 3; step <= 5; step++) {
                assertThat(successor.train(step))
                        .as("step %d", step)
                        .isEqualTo(original.train(step));
            }
        }
    }

    @Test
    void theMemoryOfAMirrorIsKnownBefore() {
        GptSettings settings = settings(3, true, Precision.BF16);
        GptStageFactory factory = factory(settings);
        for (int stage = 0; stage < 3; stage++) {
            try (Device device = Devices.open(DeviceSettings.DEFAULTS);
                    var _ = factory.mirror(stage, RankPlace.single(stage), device)) {
                assertThat(device.memory().liveBytes())
                        .isEqualTo(
                                factory.predictedMirrorMemory(stage, RankPlace.single(stage))
                                        .total());
            }
        }
    }

    private static GptSettings settings(int stages, boolean tied, Precision precision) {
        return TinyRuns.settings(
                tied ? TinyRuns.TIED : TinyRuns.UNTIED,
                stages,
                TinyRuns.batch(List.of(16)),
                precision);
    }

    private static PipelineDriver driver(Device device, GptSettings settings) {
        return driver(device, settings, ParameterSource.none());
    }

    private static PipelineDriver driver(
            Device device, GptSettings settings, ParameterSource source) {
        return new PipelineDriver(
                        device,
                        settings,
                        Orders.oneForwardOneBackward(settings.partition().stages(), 3, 1),
                        TinyRuns.tokens(settings.shape().vocabulary()),
                        source)
                .clippingTo(0.5);
    }

    private static GptStageFactory factory(GptSettings settings) {
        int stages = settings.partition().stages();
        return new GptStageFactory(
                settings,
                Collections.nCopies(stages, StageBudget.everything(settings.batch())),
                TinyRuns.tokens(settings.shape().vocabulary()),
                ParameterSource.none());
    }

    private static void copy(List<NamedTensor> from, List<NamedTensor> to) {
        assertThat(to.stream().map(NamedTensor::name).toList())
                .isEqualTo(from.stream().map(NamedTensor::name).toList());
        for (int i = 0; i < from.size(); i++) {
            MemorySegment source = from.get(i).tensor().segment();
            MemorySegment.copy(source, 0, to.get(i).tensor().segment(), 0, source.byteSize());
        }
    }

    private static Map<String, List<Integer>> bits(TrainedState state) {
        Map<String, List<Integer>> bits = new TreeMap<>();
        for (NamedTensor named : state.tensors()) {
            int[] words = named.tensor().segment().toArray(ValueLayout.JAVA_INT);
            bits.put(named.name(), Arrays.stream(words).boxed().collect(Collectors.toList()));
        }
        return bits;
    }
}
