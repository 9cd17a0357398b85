package dev.penstock.runtime.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.DeviceSettings.Gemm;
import dev.penstock.cuda.device.DeviceSettings.Kind;
import dev.penstock.runtime.model.parameters.ParameterSource;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.schedules.ir.Schedule;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The fast CPU device under the same runs as the reference device. */
class CpuDeviceRunTest {
    private static final DeviceSettings CPU = DeviceSettings.DEFAULTS.withKind(Kind.CPU);
    private static final ModelShape SHAPE = ModelShape.gpt2(301, 64, 64, 2, 4, true);
    private static final int STEPS = 2;

    @ParameterizedTest
    @EnumSource(names = {"AUTO", "JAVA"})
    void slicesStagesAndThreadsDoNotChangeABit(Gemm gemm) {
        DeviceSettings settings = CPU.withGemm(gemm);

        Map<String, Object> whole = run(settings.withThreads(1), 1, List.of(64));

        assertThat(run(settings.withThreads(2), 1, List.of(64))).isEqualTo(whole);
        assertThat(run(settings.withThreads(1), 1, List.of(32, 32))).isEqualTo(whole);
        assertThat(run(settings.withThreads(2), 3, List.of(32, 16, 16))).isEqualTo(whole);
    }

    @Test
    void lossesAreThoseOfTheReferenceDevice() {
        DeviceSettings reference = DeviceSettings.DEFAULTS.withKind(Kind.REFERENCE);
        List<Double> expected = losses(reference, List.of(64));

        List<Double> losses = losses(CPU, List.of(64));

        for (int i = 0; i < expected.size(); i++) {
            assertThat(losses.get(i)).isCloseTo(expected.get(i), within(1e-5));
        }
    }

    private static List<Double> losses(DeviceSettings settings, List<Integer> slices) {
        try (PipelineDriver pipeline = pipeline(settings, 2, slices)) {
            List<Double> losses = new ArrayList<>();
            for (int step = 1; step <= STEPS; step++) {
                losses.add(pipeline.train(step));
            }
            return losses;
        }
    }

    private static Map<String, Object> run(
            DeviceSettings settings, int stages, List<Integer> slices) {
        try (PipelineDriver pipeline = pipeline(settings, stages, slices)) {
            Map<String, Object> outcome = new TreeMap<>();
            for (int step = 1; step <= STEPS; step++) {
                outcome.put("loss " + step, pipeline.train(step));
            }
            pipeline.gradients().forEach((name, g) -> outcome.put("gradient of " + name, bits(g)));
            pipeline.state().forEach((name, w) -> outcome.put(name, bits(w)));
            return outcome;
        }
    }

    private static List<Integer> bits(float[] values) {
        Integer[] bits = new Integer[values.length];
        Arrays.setAll(bits, i -> Float.floatToRawIntBits(values[i]));
        return List.of(bits);
    }

    private static PipelineDriver pipeline(
            DeviceSettings settings, int stages, List<Integer> slices) {
        BatchShape batch = new BatchShape(2, 2, slices, 16);
        Schedule order = Orders.oneForwardOneBackward(stages, 2, slices.size());
        return new PipelineDriver(
                Devices.open(settings),
                TinyRuns.settings(SHAPE, stages, batch),
                order,
                TinyRuns.tokens(SHAPE.vocabulary()),
                ParameterSource.none());
    }
}
