package dev.penstock.cuda.gpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.cuda.EmulatedGpus;
import dev.penstock.cuda.cublas.Cublas;
import dev.penstock.cuda.cublas.CublasMultiplier;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.DeviceSettings.Gemm;
import dev.penstock.cuda.device.DeviceSettings.Kind;
import dev.penstock.cuda.device.Tensor;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Which library multiplies on a GPU, and what happens when that fails. */
class GpuProductsTest {
    private static final DeviceSettings GPU = DeviceSettings.DEFAULTS.withKind(Kind.CUDA);
    private static final String WHERE = "penstock.cublas";

    @TempDir Path empty;
    private String cublas = "";

    @BeforeEach
    void gpus() {
        EmulatedGpus.requireEmulated();
        cublas = System.getProperty(WHERE, "");
    }

    @AfterEach
    void asItWas() {
        System.setProperty(WHERE, cublas);
        System.clearProperty("penstock.cublaslt");
        EmulatedGpus.set("LOSE_DEVICE", "");
        EmulatedGpus.set("WRONG_EPILOGUE", "");
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 4, 164, 192})
    void aCublasLtThatComputesSomethingElseIsNotUsed(int epilogue) {
        EmulatedGpus.set("WRONG_EPILOGUE", "" + epilogue);

        assertThat(opened(Gemm.CUBLAS)).contains("without cublasLt").contains("/cublas-13.0.0");
    }

    @Test
    void theDeviceSaysWhoMultipliesAndWhy() {
        assertThat(opened(Gemm.AUTO))
                .contains("cuBLAS 13.0.0 in " + cublas)
                .contains("/cublas-lt-13.0.0");
        assertThat(opened(Gemm.KERNELS)).contains("our own products (as set)").contains("/own");

        System.setProperty("penstock.cublaslt", "none");
        assertThat(opened(Gemm.AUTO)).contains("without cublasLt").contains("/cublas-13.0.0");

        System.setProperty(WHERE, empty.toString());
        assertThat(opened(Gemm.AUTO))
                .contains("our own products (there is no libcublas.so.13, .12 or .11 in " + empty);
    }

    private static String opened(Gemm gemm) {
        try (Device device = GpuDevice.open(GPU.withGemm(gemm))) {
            return device.name() + " " + device.fingerprint();
        }
    }

    @Test
    void cublasThatIsInsistedOnAndNotThereIsAnError() {
        System.setProperty(WHERE, empty.toString());

        assertThatThrownBy(() -> GpuDevice.open(GPU.withGemm(Gemm.CUBLAS)))
                .isInstanceOf(DeviceException.class)
                .hasMessageContaining("opening GPU 0: expected cuBLAS, but there is no libcublas")
                .hasMessageContaining("try gemm = auto or kernels");
        assertThatThrownBy(() -> GpuDevice.open(GPU.withGemm(Gemm.ONEDNN)))
                .hasMessageContaining(
                        "expected gemm = auto, cublas or kernels, got onednn, which is for CPUs");
    }

    @Test
    void aLostGpuShowsInAProductToo() {
        Device lost = GpuDevice.open(GPU.withGpu(3));
        Tensor x = lost.memory().tensor("x", DType.F32, 10, 10);
        EmulatedGpus.set("LOSE_DEVICE", "3:1");

        assertThatThrownBy(() -> lost.kernels().gemm(DType.F32, false, x, false, x, x, true))
                .isInstanceOf(DeviceException.class)
                .hasMessageContaining("multiplying by cuBLAS on GPU 3: the GPU is lost")
                .hasMessageContaining("CUDA_ERROR_DEVICE_UNAVAILABLE");
        lost.close();
    }

    /** Arguments that our own checks would refuse. */
    @Test
    void rowsThatOverlapAreRefusedByCublas() {
        try (Device device = GpuDevice.open(GPU)) {
            Tensor x = device.memory().tensor("x", DType.F32, 10, 10);
            if (!(Cublas.probe() instanceof Cublas.Probe.Found(var libraries))) {
                throw new AssertionError("the emulated cuBLAS is not there");
            }
            long at = x.address();

            try (CublasMultiplier cublas = libraries.getFirst().multiplier(0, 0, 0)) {
                assertThatThrownBy(
                                () ->
                                        cublas.multiply(
                                                DType.F32, false, false, 3, 3, 3, at, 2, at, 3,
                                                false, at, 3))
                        .isInstanceOf(DeviceException.class)
                        .hasMessage(
                                "cublasGemmEx of 3 x 3 x 3: expected success, got"
                                        + " CUBLAS_STATUS_INVALID_VALUE");
            }
        }
    }
}
