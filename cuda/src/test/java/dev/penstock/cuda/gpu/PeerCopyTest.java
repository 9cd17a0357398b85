package dev.penstock.cuda.gpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.cuda.EmulatedGpus;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceBuffer;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.DeviceLostException;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.DeviceSettings.Kind;
import dev.penstock.cuda.device.Gpus;
import dev.penstock.cuda.device.Tensor;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import jcuda.CudaException;
import jcuda.driver.JCudaDriver;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Copies from GPU to GPU without the host, also beside work that is captured for graphs. GPUs 2 and
 * 3 shuffle the threads of their kernels.
 */
@ParameterizedClass(name = "with graphs: {0}")
@ValueSource(booleans = {false, true})
class PeerCopyTest {
    private static final int ELEMENTS = 1000;
    private static final int MIB = 1 << 20;

    private final DeviceSettings settings;

    PeerCopyTest(boolean graphs) {
        settings = DeviceSettings.DEFAULTS.withKind(Kind.CUDA).withGraphs(graphs);
    }

    @BeforeEach
    void gpus() {
        EmulatedGpus.requireEmulated();
    }

    @AfterEach
    void noFaults() {
        EmulatedGpus.set("COPY_MILLIS", "");
        EmulatedGpus.set("NO_PEERS", "");
        EmulatedGpus.set("LOSE_AT_COPY", "");
        EmulatedGpus.set("LOSE_DEVICE", "");
    }

    /**
     * Copies take long: code that did not wait for a kernel or a copy would see the old contents.
     */
    @ParameterizedTest
    @CsvSource({"0, 1", "1, 3", "3, 2", "2, 2"})
    void whatKernelsMadeOnOneGpuIsThereOnTheOther(int from, int to) {
        EmulatedGpus.set("COPY_MILLIS", "20");
        try (Device sender = open(from);
                Device receiver = open(to)) {
            Tensor sent = staged(sender, "sent");
            Tensor slot = staged(receiver, "slot");
            slot.buffer().lastUsed();
            Tensor ones = ones(sender);
            assertThat(sent.buffer().reaches(slot.buffer())).isTrue();
            for (int time = 1; time <= 3; time++) {
                for (int i = 0; i < 3; i++) {
                    sender.kernels().add(ones, sent);
                }
                sent.buffer().beginCopyTo(slot.buffer(), sent.bytes());
                awaitCopy(sent.buffer());

                assertThat(receiver.kernels().squaredNorm(slot))
                        .isEqualTo(9.0 * time * time * ELEMENTS);
                slot.buffer().lastUsed();
            }
        }
    }

    /** The copies are enqueued but have not run. */
    @Test
    void aCopyWaitsForKernelsThatUseWhatIsInItsPlace() {
        int times = 200;
        try (Device sender = open(0);
                Device receiver = open(2)) {
            Tensor slot = staged(receiver, "slot");
            receiver.kernels().copy(ones(receiver), slot);
            Tensor sum = receiver.memory().tensor("sum", DType.F32, 1, ELEMENTS);
            Tensor sent = staged(sender, "sent");
            assertThat(sent.buffer().reaches(slot.buffer())).isTrue();
            for (int i = 0; i < times; i++) {
                receiver.kernels().add(slot, sum);
            }
            slot.buffer().lastUsed();

            sent.buffer().beginCopyTo(slot.buffer(), sent.bytes());
            awaitCopy(sent.buffer());

            assertThat(receiver.kernels().squaredNorm(sum))
                    .isEqualTo((double) times * times * ELEMENTS);
            assertThat(receiver.kernels().squaredNorm(slot)).isZero();
        }
    }

    @Test
    void gpusThatDoNotSeeEachOthersMemoryAreNotReached() {
        EmulatedGpus.set("NO_PEERS", "1");
        try (Device sender = open(0);
                Device other = open(1);
                Device same = open(0)) {
            DeviceBuffer sent = staged(sender, "sent").buffer();

            assertThat(sent.reaches(staged(other, "slot").buffer())).isFalse();
            assertThat(sent.reaches(staged(same, "slot").buffer())).isTrue();
            assertThat(sent.reaches(other.memory().allocate("not staged", MIB))).isFalse();
        }
    }

    /** Therefore every copy above had access. */
    @Test
    void theEmulatorRefusesCopiesWithoutAccess() {
        GpuContext one = context(1);
        GpuContext two = context(2);
        DevicePointer from = pointer(one);
        DevicePointer to = pointer(two);
        try {
            assertThatThrownBy(() -> copy(one, from, two, to))
                    .isInstanceOf(CudaException.class)
                    .hasMessageContaining("PEER_ACCESS_NOT_ENABLED");
            assertThat(PeerAccess.enable(one, two)).isTrue();
            assertThat(PeerAccess.enable(one, two)).as("again").isTrue();
            copy(one, from, two, to);
            one.finish();
            assertThatThrownBy(() -> copy(one, to, two, from))
                    .as("addresses of the other GPU")
                    .hasMessageContaining("INVALID_VALUE");
        } finally {
            JCudaDriver.cuMemFree(from);
            JCudaDriver.cuMemFree(to);
            one.close();
            two.close();
        }
    }

    private static DevicePointer pointer(GpuContext gpu) {
        DevicePointer pointer = new DevicePointer();
        gpu.bind();
        JCudaDriver.cuMemAlloc(pointer, MIB);
        return pointer;
    }

    private static void copy(GpuContext one, DevicePointer from, GpuContext two, DevicePointer to) {
        one.bind();
        JCudaDriver.cuMemcpyPeerAsync(to, two.handle(), from, one.handle(), MIB, one.stream());
    }

    /** The emulator frees at once: a copy still running would crash the process. */
    @ParameterizedTest
    @CsvSource({"true", "false"})
    void memoryUnderACopyIsFreedWhenTheCopyIsDone(boolean targetFirst) {
        long before = freeBytes();
        EmulatedGpus.set("COPY_MILLIS", "50");
        try (Device sender = open(0);
                Device receiver = open(1)) {
            DeviceScope sending = sender.memory().child("sending", Long.MAX_VALUE);
            DeviceScope receiving = receiver.memory().child("receiving", Long.MAX_VALUE);
            DeviceBuffer sent = sending.allocateStaged("sent", MIB);
            DeviceBuffer slot = receiving.allocateStaged("slot", MIB);
            assertThat(sent.reaches(slot)).isTrue();

            sent.beginCopyTo(slot, MIB);
            (targetFirst ? receiving : sending).close();
            (targetFirst ? sending : receiving).close();

            assertThatThrownBy(() -> sent.beginCopyTo(slot, MIB))
                    .hasMessageContaining("expected it alive");
        }
        assertThat(freeBytes()).isEqualTo(before);
    }

    @Test
    void aGpuThatIsLostDuringACopyIsNamed() {
        try (Device receiver = open(1);
                Device sender = open(3)) {
            DeviceBuffer sent = staged(sender, "output 0").buffer();
            DeviceBuffer slot = staged(receiver, "slot 0").buffer();
            assertThat(sent.reaches(slot)).isTrue();
            EmulatedGpus.set("LOSE_AT_COPY", "3:1");

            assertThatThrownBy(
                            () -> {
                                sent.beginCopyTo(slot, 4 * ELEMENTS);
                                awaitCopy(sent);
                            })
                    .isInstanceOf(DeviceException.class)
                    .hasMessageContaining(
                            "copying 'output 0' to 'slot 0' of GPU 1 from GPU 3; GPU 3: the GPU is lost");
            assertThat(receiver.kernels().allFinite(ones(receiver))).isTrue();
        }
    }

    /** The process of its own rank gives it up; the sender's GPU is healthy and stays. */
    @Test
    void aCopyToALostGpuNamesThatOne() {
        try (Device receiver = open(1);
                Device sender = open(3)) {
            DeviceBuffer sent = staged(sender, "output 0").buffer();
            DeviceBuffer slot = staged(receiver, "slot 0").buffer();
            Tensor ones = ones(receiver);
            assertThat(sent.reaches(slot)).isTrue();
            EmulatedGpus.set("LOSE_DEVICE", "1:1");
            assertThatThrownBy(
                            () -> {
                                receiver.kernels().add(ones, ones);
                                receiver.kernels().finish();
                            })
                    .isInstanceOf(DeviceLostException.class);

            assertThatThrownBy(
                            () -> {
                                sent.beginCopyTo(slot, 4 * ELEMENTS);
                                awaitCopy(sent);
                            })
                    .isInstanceOf(DeviceException.class)
                    .isNotInstanceOf(DeviceLostException.class)
                    .hasMessageContaining("from GPU 3; GPU 1: the GPU is lost");
            assertThat(sender.kernels().allFinite(ones(sender))).isTrue();
        }
    }

    @Test
    void theHostUsesTheStagingMemoryOnly() {
        try (Device device = open(0)) {
            Tensor staged = staged(device, "sent");

            assertThatThrownBy(staged::segment)
                    .isInstanceOf(DeviceException.class)
                    .hasMessageContaining("expected its staging memory");
        }
    }

    private Device open(int gpu) {
        return GpuDevice.open(settings.withGpu(gpu));
    }

    private static GpuContext context(int gpu) {
        assertThat(GpuProbe.run()).isInstanceOf(Gpus.Found.class);
        return new GpuContext(gpu);
    }

    private static Tensor staged(Device device, String name) {
        return Tensor.of(
                device.memory().allocateStaged(name, 4L * ELEMENTS), DType.F32, 1, ELEMENTS);
    }

    private static Tensor ones(Device device) {
        Tensor ones = device.memory().tensor("ones", DType.F32, 1, ELEMENTS);
        float[] values = new float[ELEMENTS];
        Arrays.fill(values, 1);
        ones.write(MemorySegment.ofArray(values));
        return ones;
    }

    private static void awaitCopy(DeviceBuffer copied) {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        while (!copied.isCopied()) {
            assertThat(System.nanoTime()).isLessThan(deadline);
            Thread.onSpinWait();
        }
    }

    private static long freeBytes() {
        GpuContext one = context(0);
        GpuContext two = context(1);
        long[] free = new long[1];
        long sum = 0;
        for (GpuContext each : new GpuContext[] {one, two}) {
            each.bind();
            JCudaDriver.cuMemGetInfo(free, new long[1]);
            sum += free[0];
            each.close();
        }
        return sum;
    }
}
