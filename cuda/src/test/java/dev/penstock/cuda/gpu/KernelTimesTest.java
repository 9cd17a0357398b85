package dev.penstock.cuda.gpu;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.cuda.EmulatedGpus;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.DeviceSettings.Gemm;
import dev.penstock.cuda.device.DeviceSettings.Kind;
import dev.penstock.cuda.device.Tensor;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What a device that is asked to measure writes when it closes. */
class KernelTimesTest {
    private static final String PROPERTY = "penstock.gpu.times";
    private static final DeviceSettings GPU = DeviceSettings.DEFAULTS.withKind(Kind.CUDA);

    @TempDir Path folder;

    @BeforeEach
    void gpus() {
        EmulatedGpus.requireEmulated();
    }

    @AfterEach
    void measureNoMore() {
        System.clearProperty(PROPERTY);
    }

    @Test
    void eachKernelAndEachShapeOfProductIsCountedWithWhatLiesBetween() throws IOException {
        Path file = folder.resolve("times.tsv");
        System.setProperty(PROPERTY, file.toString());
        try (Device device = GpuDevice.open(GPU.withGemm(Gemm.CUBLAS))) {
            Tensor a = device.memory().tensor("a", DType.F32, 4, 8);
            Tensor b = device.memory().tensor("b", DType.F32, 8, 16);
            Tensor bias = device.memory().tensor("bias", DType.F32, 1, 16);
            Tensor c = device.memory().tensor("c", DType.F32, 4, 16);
            for (int op = 0; op < 3; op++) {
                device.kernels().gemm(DType.F32, false, a, false, b, c, op > 0);
                device.kernels().addBias(c, bias);
                device.kernels().finish();
            }
        }

        List<String[]> lines =
                Files.readAllLines(file).stream().map(each -> each.split("\t", -1)).toList();
        assertThat(lines)
                .extracting(each -> each[0] + " x " + each[1])
                .containsExactlyInAnyOrder(
                        "product [4, 16] of 8 x 1",
                        "product [4, 16] of 8, added x 2",
                        "addBias x 3",
                        "(between kernels) x 3");
        assertThat(lines)
                .allSatisfy(each -> assertThat(Double.parseDouble(each[2])).isNotNegative());
    }
}
