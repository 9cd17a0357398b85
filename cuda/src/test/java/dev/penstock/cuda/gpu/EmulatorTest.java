package dev.penstock.cuda.gpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.cuda.EmulatedGpus;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.DeviceSettings.Kind;
import dev.penstock.cuda.device.Tensor;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import jcuda.CudaException;
import jcuda.driver.CUfunction;
import jcuda.driver.CUmodule;
import jcuda.driver.JCudaDriver;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** That the emulator finds what it is there to find. */
class EmulatorTest {

    @BeforeAll
    static void gpus() {
        EmulatedGpus.requireEmulated();
    }

    /** GPU 0 runs threads forward, GPU 1 in reverse. */
    @Test
    void aMissingBarrierShowsWhenThreadsRunInAnotherOrder() {
        assertThat(run("missingBarrier", 0)).isNotEqualTo(run("missingBarrier", 1));
    }

    @ParameterizedTest
    @ValueSource(strings = {"divergentBarrier", "wrongMask"})
    void threadsThatDoNotMeetFailTheKernel(String kernel) {
        assertThatThrownBy(() -> run(kernel, 3)).hasMessageContaining("CUDA_ERROR_LAUNCH_FAILED");
    }

    @Test
    void ptxThatIsNotOfTheSourcesIsRefused() {
        try (Device _ = open(3)) {
            assertThatThrownBy(() -> module(entry("missingBarrier", ".u32")))
                    .isInstanceOf(CudaException.class)
                    .hasMessageContaining("CUDA_ERROR_INVALID_PTX");
            assertThatThrownBy(() -> module(entry("noSuchKernel", ".u64")))
                    .hasMessageContaining("CUDA_ERROR_INVALID_PTX");
        }
    }

    private static float[] run(String kernel, int gpu) {
        try (Device device = open(gpu)) {
            Tensor result = device.memory().tensor("result", DType.F32, 1, 64);
            CUfunction function = new CUfunction();
            JCudaDriver.cuModuleGetFunction(function, module(entry(kernel, ".u64")), kernel);
            GpuContext context = new GpuContext(gpu);
            try {
                new Launch(context)
                        .begin()
                        .vector(result)
                        .run(new GpuModule.Function(kernel, function), 1, 64);
                context.finish();
            } finally {
                context.close();
            }
            return result.segment().toArray(ValueLayout.JAVA_FLOAT);
        }
    }

    private static Device open(int gpu) {
        return GpuDevice.open(DeviceSettings.DEFAULTS.withKind(Kind.CUDA).withGpu(gpu));
    }

    private static CUmodule module(String ptx) {
        CUmodule module = new CUmodule();
        JCudaDriver.cuModuleLoadData(module, (ptx + "\0").getBytes(StandardCharsets.US_ASCII));
        return module;
    }

    private static String entry(String kernel, String type) {
        return ".version 7.0\n.visible .entry %s(\n\t.param %s %s_param_0\n)\n{\n\tret;\n}\n"
                .formatted(kernel, type, kernel);
    }
}
