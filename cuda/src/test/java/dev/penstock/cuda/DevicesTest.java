package dev.penstock.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.DeviceSettings.Gemm;
import dev.penstock.cuda.device.DeviceSettings.Kind;
import dev.penstock.cuda.device.Gpus;
import dev.penstock.cuda.gpu.GpuProbe;
import dev.penstock.cuda.onednn.OneDnn;
import org.junit.jupiter.api.Test;

class DevicesTest {

    @Test
    void autoOpensTheCpu() {
        try (Device device = Devices.open(DeviceSettings.DEFAULTS.withThreads(2))) {
            assertThat(device.name()).startsWith("cpu (2 threads, ");
        }
    }

    /** On any machine. */
    @Test
    void aGpuThatIsNotThereIsRefusedAndSaysWhy() {
        assertThatThrownBy(
                        () -> Devices.open(DeviceSettings.DEFAULTS.withKind(Kind.CUDA).withGpu(99)))
                .isInstanceOf(DeviceException.class)
                .hasMessageContaining("opening device cuda:99: expected")
                .satisfies(
                        refusal ->
                                assertThat(refusal.getMessage())
                                        .contains(
                                                switch (GpuProbe.run()) {
                                                    case Gpus.None(String reason) -> reason;
                                                    case Gpus.Found(var gpus) ->
                                                            "the %d GPUs".formatted(gpus.size());
                                                }));
    }

    /** On any machine. */
    @Test
    void oneDnnIsRefusedWhereItsBitsWouldDependOnThreads() {
        switch (OneDnn.probe()) {
            case OneDnn.Probe.Found(OneDnn library) ->
                    assertThat(library.isa() & 0x20).as("AVX-512 in what it uses").isNotZero();
            case OneDnn.Probe.Missing(String reason) ->
                    assertThatThrownBy(
                                    () ->
                                            Devices.open(
                                                    DeviceSettings.DEFAULTS
                                                            .withKind(Kind.CPU)
                                                            .withGemm(Gemm.ONEDNN)))
                            .hasMessageContaining(reason);
        }
    }

    @Test
    void fingerprintsTellKernelsApartButNotThreads() {
        DeviceSettings java = DeviceSettings.DEFAULTS.withKind(Kind.CPU).withGemm(Gemm.JAVA);

        assertThat(fingerprint(java.withThreads(1))).isEqualTo(fingerprint(java.withThreads(2)));
        assertThat(fingerprint(java.withVectorBits(256)))
                .isNotEqualTo(fingerprint(java.withVectorBits(512)));
        assertThat(fingerprint(java.withKind(Kind.REFERENCE))).isNotEqualTo(fingerprint(java));
    }

    private static String fingerprint(DeviceSettings settings) {
        try (Device device = Devices.open(settings)) {
            return device.fingerprint();
        }
    }

    @Test
    void theMemoryLimitHolds() {
        DeviceSettings settings = DeviceSettings.DEFAULTS.withMemoryLimitBytes(1_000_000);
        try (Device device = Devices.open(settings)) {
            assertThatThrownBy(() -> device.memory().tensor("weights", DType.F32, 1000, 1000))
                    .isInstanceOf(DeviceException.class)
                    .hasMessageContaining("allocating 'weights': wanted 4,000,000 bytes");
        }
    }

    @Test
    void closingADeviceWithAnOpenScopeShowsIt() {
        Device device = Devices.open(DeviceSettings.DEFAULTS);
        DeviceScope scope = device.memory().child("model", Long.MAX_VALUE);

        assertThatThrownBy(device::close).hasMessageContaining("scope 'model'");

        scope.close();
        device.close();
    }

    @Test
    void wrongSettingsAreRefused() {
        assertThatThrownBy(() -> DeviceSettings.DEFAULTS.withVectorBits(100))
                .hasMessageContaining("expected vector bits 256 or 512 (0 = auto), got 100");
        assertThatThrownBy(() -> DeviceSettings.DEFAULTS.withThreads(-1))
                .hasMessageContaining("expected threads of 1 or more");
    }

    /**
     * On any machine: GPUs with all their properties, or a sentence that says why there are none.
     */
    @Test
    void theSurveyNamesGpusOrSaysWhyThereAreNone() {
        DeviceSurvey survey = Devices.survey();

        assertThat(survey.products()).isNotBlank();
        assertThat(survey.automatic()).startsWith("cpu: ");
        switch (survey.gpus()) {
            case Gpus.None(String reason) -> assertThat(reason).isNotBlank();
            case Gpus.Found(var gpus) ->
                    assertThat(gpus)
                            .allSatisfy(
                                    gpu -> {
                                        assertThat(gpu.name()).isNotBlank();
                                        assertThat(gpu.memoryBytes()).isPositive();
                                        assertThat(gpu.computeCapability()).matches("\\d+\\.\\d+");
                                    });
        }
    }
}
