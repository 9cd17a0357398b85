package dev.penstock.cuda.gpu;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.cuda.EmulatedGpus;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.DeviceSettings.Kind;
import dev.penstock.cuda.device.Tensor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Streams of kernels and of copies, one of which runs as early or as late as events let it: no
 * result may depend on that, and where a wait is missing, one does.
 */
class StreamOrderTest {
    private static final DeviceSettings GPU = DeviceSettings.DEFAULTS.withKind(Kind.CUDA);
    private static final int ELEMENTS = 100;

    @BeforeEach
    void gpus() {
        EmulatedGpus.requireEmulated();
    }

    @AfterEach
    void asUsual() {
        EmulatedGpus.set("STREAMS", "");
    }

    @ParameterizedTest
    @CsvSource({
        "late, false",
        "copies, false",
        "kernels, false",
        "late, true",
        "copies, true",
        "kernels, true"
    })
    void aStepHasTheSameBitsInWhateverOrderStreamsRun(String streams, boolean graphs) {
        List<Long> usual = step(GPU.withGraphs(graphs));

        EmulatedGpus.set("STREAMS", streams);

        assertThat(step(GPU.withGraphs(graphs))).isEqualTo(usual);
    }

    private static List<Long> step(DeviceSettings settings) {
        List<Long> seen = new ArrayList<>();
        try (Device device = GpuDevice.open(settings)) {
            RankStep.run(device, seen::add);
        }
        return seen;
    }

    @ParameterizedTest
    @CsvSource({"true, 400", "false, 0"})
    void kernelsThatDoNotAwaitACopyReadWhatWasThereBefore(boolean wait, double norm) {
        EmulatedGpus.set("STREAMS", "late");
        try (Device device = GpuDevice.open(GPU)) {
            Tensor slot = staged(device, "slot");
            slot.staging().copyFrom(MemorySegment.ofArray(filled(2)));

            slot.buffer().beginToDevice(slot.bytes());
            if (wait) {
                slot.buffer().kernelsAwaitCopy();
            }

            assertThat(device.kernels().squaredNorm(slot)).isEqualTo(norm);
        }
    }

    @ParameterizedTest
    @CsvSource({"true, 0", "false, 100"})
    void aSlotWhoseLastUseWasNotSaidIsOverwrittenTooEarly(boolean said, double norm) {
        EmulatedGpus.set("STREAMS", "copies");
        try (Device sender = GpuDevice.open(GPU);
                Device receiver = GpuDevice.open(GPU.withGpu(1))) {
            Tensor sent = staged(sender, "sent");
            sent.write(MemorySegment.ofArray(filled(1)));
            Tensor slot = staged(receiver, "slot");
            Tensor sum = receiver.memory().tensor("sum", DType.F32, 1, ELEMENTS);
            assertThat(sent.buffer().reaches(slot.buffer())).isTrue();

            receiver.kernels().add(slot, sum);
            if (said) {
                slot.buffer().lastUsed();
            }
            sent.buffer().beginCopyTo(slot.buffer(), sent.bytes());

            assertThat(receiver.kernels().squaredNorm(sum)).isEqualTo(norm);
        }
    }

    @Test
    void memoryThatIsWrittenUnderACopyArrivesWrong() {
        EmulatedGpus.set("STREAMS", "kernels");
        try (Device device = GpuDevice.open(GPU)) {
            Tensor ones = device.memory().tensor("ones", DType.F32, 1, ELEMENTS);
            ones.write(MemorySegment.ofArray(filled(1)));
            Tensor sent = staged(device, "sent");

            device.kernels().add(ones, sent);
            sent.buffer().beginToHost(sent.bytes());
            device.kernels().add(ones, sent);
            GpuDeviceTest.awaitCopy(sent.buffer());

            assertThat(sent.staging().toArray(ValueLayout.JAVA_FLOAT)).containsOnly(2);
        }
    }

    private static Tensor staged(Device device, String name) {
        return Tensor.of(
                device.memory().allocateStaged(name, (long) Float.BYTES * ELEMENTS),
                DType.F32,
                1,
                ELEMENTS);
    }

    private static float[] filled(float value) {
        float[] values = new float[ELEMENTS];
        Arrays.fill(values, value);
        return values;
    }
}
