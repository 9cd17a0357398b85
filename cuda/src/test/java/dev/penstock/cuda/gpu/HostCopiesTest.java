package dev.penstock.cuda.gpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.cuda.EmulatedGpus;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceBuffer;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.DeviceSettings.Kind;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenRange;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What the host writes to a GPU and reads from it; also on a real one. */
@Tag("gpu")
class HostCopiesTest {
    private static final DeviceSettings GPU = DeviceSettings.DEFAULTS.withKind(Kind.CUDA);

    @BeforeEach
    void gpus() {
        EmulatedGpus.require();
    }

    @AfterEach
    void noFaults() {
        EmulatedGpus.set("COPY_MILLIS", "");
    }

    @Test
    void theHostSeesCopiesOnly() {
        try (Device device = GpuDevice.open(GPU)) {
            Tensor tensor = device.memory().tensor("t", DType.F32, 2, 2);

            assertThat(tensor.buffer().isHostMemory()).isFalse();
            assertThatThrownBy(tensor::segment)
                    .isInstanceOf(DeviceException.class)
                    .hasMessage(
                            "use of buffer 't' by the host: expected its staging memory or a copy,"
                                    + " it lies on GPU 0 alone");
        }
    }

    /** Lengths around what pinned memory holds; copies that are slow show who does not wait. */
    @ParameterizedTest
    @ValueSource(
            ints = {
                1,
                HostCopies.HALF_BYTES - 4,
                HostCopies.HALF_BYTES,
                2 * HostCopies.HALF_BYTES,
                3 * HostCopies.HALF_BYTES + 12
            })
    void bytesOfAnyLengthComeBackAsTheyWereWritten(int length) {
        EmulatedGpus.set("COPY_MILLIS", "2");
        byte[] bytes = new byte[length];
        new Random(length).nextBytes(bytes);
        try (Device device = GpuDevice.open(GPU)) {
            DeviceBuffer buffer = device.memory().allocate("bytes", length + 7L);
            MemorySegment written = MemorySegment.ofArray(bytes.clone());

            buffer.write(3, written);
            written.fill((byte) 0); // it is the caller's again
            byte[] read = new byte[length];
            buffer.read(3, MemorySegment.ofArray(read));

            assertThat(read).isEqualTo(bytes);
            MemorySegment all = buffer.contents(0, length + 7L);
            assertThat(all.asSlice(0, 3).toArray(ValueLayout.JAVA_BYTE)).containsOnly(0);
            assertThat(all.asSlice(length + 3L).toArray(ValueLayout.JAVA_BYTE)).containsOnly(0);
            assertThatThrownBy(() -> buffer.write(8, MemorySegment.ofArray(bytes)))
                    .isInstanceOf(IndexOutOfBoundsException.class);
            assertThatThrownBy(() -> buffer.read(8, MemorySegment.ofArray(read)))
                    .isInstanceOf(IndexOutOfBoundsException.class);
        }
    }

    /** More small ones than pinned memory holds at a time, with kernels that use each. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void whatIsWrittenIsInOrderWithKernels(boolean graphs) {
        int elements = HostCopies.HALF_BYTES / 4 / Float.BYTES;
        EmulatedGpus.set("COPY_MILLIS", "2");
        try (Device device = GpuDevice.open(GPU.withGraphs(graphs))) {
            Tensor x = device.memory().tensor("x", DType.F32, 1, elements);
            Tensor sum = device.memory().tensor("sum", DType.F32, 1, elements);
            for (int i = 1; i <= 20; i++) {
                x.write(MemorySegment.ofArray(filled(elements, i)));
                device.kernels().add(x, sum);
            }

            assertThat(sum.contents().toArray(ValueLayout.JAVA_FLOAT)).containsOnly(210);
            assertThat(x.contents().toArray(ValueLayout.JAVA_FLOAT)).containsOnly(20);
        }
    }

    /** Any thread reads a checkpoint, while the rank's own goes on elsewhere. */
    @Test
    void threadsCopyAtTheSameTime() throws Exception {
        int elements = HostCopies.HALF_BYTES / Float.BYTES / 3;
        try (Device device = GpuDevice.open(GPU);
                ExecutorService threads = Executors.newFixedThreadPool(4)) {
            List<Future<?>> all =
                    IntStream.range(0, 4)
                            .<Future<?>>mapToObj(
                                    i -> threads.submit(() -> writeAndRead(device, i, elements)))
                            .toList();
            for (Future<?> each : all) {
                each.get(60, TimeUnit.SECONDS);
            }
        }
    }

    private static void writeAndRead(Device device, int thread, int elements) {
        Tensor own = device.memory().tensor("of " + thread, DType.F32, 1, elements);
        for (int i = 0; i < 20; i++) {
            own.write(MemorySegment.ofArray(filled(elements, 100 * thread + i)));
            assertThat(own.contents().toArray(ValueLayout.JAVA_FLOAT))
                    .containsOnly(100 * thread + i);
        }
    }

    /** The GPU's copy would have to be waited for. */
    @Test
    void indicesAreCheckedByWhatTheHostWrote() {
        try (Device device = GpuDevice.open(GPU)) {
            Tensor tokens = device.memory().tensor("tokens", DType.I32, 1, 8);
            Tensor table = device.memory().tensor("table", DType.F32, 10, 4);
            Tensor y = device.memory().tensor("y", DType.F32, 3, 4);
            TokenRange all = TokenRange.all(10);
            assertThatThrownBy(
                            () -> device.kernels().embedding(tokens.columns(5, 3), all, table, y))
                    .isInstanceOf(DeviceException.class)
                    .hasMessageContaining("expected indices that the host wrote");

            tokens.columns(4, 3).writeIndices(MemorySegment.ofArray(new int[] {10, 1, 2}));

            device.kernels().embedding(tokens.columns(5, 3), all, table, y);
            assertThatThrownBy(
                            () -> device.kernels().embedding(tokens.columns(4, 3), all, table, y))
                    .hasMessage("embedding: expected tokens of 0 to 9, got 10 at row 0");
            assertThat(tokens.contents().toArray(ValueLayout.JAVA_INT))
                    .containsExactly(0, 0, 0, 0, 10, 1, 2, 0);
        }
    }

    private static float[] filled(int count, float value) {
        float[] values = new float[count];
        Arrays.fill(values, value);
        return values;
    }
}
