package dev.penstock.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.cuda.SlicedStep.Sizes;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.DeviceSettings.Gemm;
import dev.penstock.cuda.device.DeviceSettings.Kind;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Bits depend on the inputs only: not on slices that end on the grid, not on threads. */
@ParameterizedClass
@MethodSource("devices")
class BitsTest {
    /** Slices of 4 tokens have fewer rows than a library's smallest tile. */
    private static final Sizes TINY = new Sizes(1, 12, 40, 2, 50, 4);

    private static final Sizes SMALL = new Sizes(2, 24, 40, 2, 50, 8);
    private static final Sizes LARGE = new Sizes(1, 160, 264, 2, 300, 32);

    private final DeviceSettings settings;
    private final DType multiply;

    BitsTest(DeviceSettings settings, DType multiply) {
        this.settings = settings;
        this.multiply = multiply;
    }

    static Stream<Arguments> devices() {
        DeviceSettings cpu = DeviceSettings.DEFAULTS.withKind(Kind.CPU).withThreads(2);
        return Stream.of(
                Arguments.of(DeviceSettings.DEFAULTS.withKind(Kind.REFERENCE), DType.F32),
                Arguments.of(cpu.withGemm(Gemm.JAVA).withVectorBits(512), DType.F32),
                Arguments.of(cpu.withGemm(Gemm.JAVA).withVectorBits(256), DType.F32),
                Arguments.of(cpu.withGemm(Gemm.JAVA).withVectorBits(512), DType.BF16),
                Arguments.of(cpu, DType.F32),
                Arguments.of(cpu, DType.BF16));
    }

    private Map<String, Long> step(DeviceSettings device, Sizes sizes, int... slices) {
        try (Device opened = Devices.open(device)) {
            return new SlicedStep(opened, sizes, multiply).run(slices);
        }
    }

    @Test
    void slicedEqualsUnsliced() {
        Map<String, Long> whole = step(settings, SMALL, 24);

        assertThat(step(settings, SMALL, 8, 8, 8)).isEqualTo(whole);
        assertThat(step(settings, SMALL, 16, 8)).isEqualTo(whole);
        assertThat(step(settings, TINY, 4, 4, 4)).isEqualTo(step(settings, TINY, 12));
    }

    @Test
    void slicedEqualsUnslicedWhereLibrariesChangeTheirPath() {
        if (settings.gemm() == Gemm.AUTO) {
            Map<String, Long> whole = step(settings, LARGE, 160);

            assertThat(step(settings, LARGE, 32, 64, 64)).isEqualTo(whole);
        }
    }

    @Test
    void theNumberOfThreadsDoesNotMatter() {
        if (settings.kind() != Kind.REFERENCE) {
            Map<String, Long> two = step(settings, LARGE, 160);

            assertThat(step(settings.withThreads(1), LARGE, 160)).isEqualTo(two);
            assertThat(step(settings.withThreads(5), SMALL, 24))
                    .isEqualTo(step(settings, SMALL, 24));
        }
    }

    private Map<String, Long> llamaStep(DeviceSettings device, int... slices) {
        try (Device opened = Devices.open(device)) {
            return new SlicedLlamaStep(opened, 48, 8, multiply).run(slices);
        }
    }

    @Test
    void aBlockOfLlamaHasTheSameBitsSlicedAndOnAnyNumberOfThreads() {
        Map<String, Long> whole = llamaStep(settings, 48);

        assertThat(llamaStep(settings, 16, 8, 24)).isEqualTo(whole);
        assertThat(llamaStep(settings, 8, 8, 8, 8, 8, 8)).isEqualTo(whole);
        assertThat(llamaStep(settings, 48)).isEqualTo(whole);
        if (settings.kind() != Kind.REFERENCE) {
            assertThat(llamaStep(settings.withThreads(1), 48)).isEqualTo(whole);
            assertThat(llamaStep(settings.withThreads(5), 48)).isEqualTo(whole);
        }
    }

    @Test
    void twoRunsAreEqual() {
        assertThat(step(settings, SMALL, 24)).isEqualTo(step(settings, SMALL, 24));
    }
}
