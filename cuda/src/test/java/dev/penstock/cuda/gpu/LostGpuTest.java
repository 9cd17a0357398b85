package dev.penstock.cuda.gpu;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.cuda.EmulatedGpus;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceLostException;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.DeviceSettings.Gemm;
import dev.penstock.cuda.device.DeviceSettings.Kind;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** A GPU that is lost at any call of the driver, from the first to the last that closes it. */
class LostGpuTest {
    private static final int GPU = 3;

    /** System property: 1 loses the GPU at every call, which takes minutes. */
    private static final String STRIDE = "penstock.gpu.lost-stride";

    @BeforeEach
    void gpus() {
        EmulatedGpus.requireEmulated();
        // what is asked for is soon done: fewer calls are questions whether it is
        EmulatedGpus.set("STREAMS", "copies");
    }

    @AfterEach
    void noFaults() {
        EmulatedGpus.set("LOSE_AT_CALL", "");
        EmulatedGpus.set("STREAMS", "");
    }

    @ParameterizedTest
    @CsvSource({"KERNELS, false, 13", "CUBLAS, false, 29", "CUBLAS, true, 31"})
    void aGpuLostAtAnyCallIsNamedAndClosesAndNothingWrongWasRead(
            Gemm gemm, boolean graphs, int stride) {
        DeviceSettings settings =
                DeviceSettings.DEFAULTS
                        .withKind(Kind.CUDA)
                        .withGpu(GPU)
                        .withGemm(gemm)
                        .withGraphs(graphs);
        long liveBefore = EmulatedGpus.live();
        List<Long> truth = new ArrayList<>();
        work(settings, truth);

        Set<Integer> reached = new HashSet<>();
        long calls = Long.MAX_VALUE;
        int next = Integer.getInteger(STRIDE, stride);
        for (long call = 1; call <= calls; call += next) {
            long before = EmulatedGpus.calls();
            EmulatedGpus.set("LOSE_AT_CALL", GPU + ":" + call);
            List<Long> seen = new ArrayList<>();
            String at = "lost at call " + call;
            try {
                work(settings, seen);
                assertThat(seen).as(at).isEqualTo(truth);
                calls = EmulatedGpus.calls() - before;
            } catch (DeviceLostException e) {
                reached.add(seen.size());
                assertThat(e.isGone()).as(at).isTrue();
                assertThat(e).as(at).hasMessageMatching("[a-z].+GPU 3.*: the GPU is lost, .*");
                assertThat(seen).as(at).isEqualTo(truth.subList(0, seen.size()));
            }
            assertThat(EmulatedGpus.live()).as(at).isEqualTo(liveBefore);
        }
        assertThat(reached).as("results before losses").contains(0).hasSizeGreaterThan(4);
    }

    private static void work(DeviceSettings settings, List<Long> seen) {
        try (Device device = GpuDevice.open(settings)) {
            RankStep.run(device, seen::add);
        }
    }
}
