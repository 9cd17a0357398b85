package dev.penstock.cuda.gpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.cuda.EmulatedGpus;
import dev.penstock.cuda.device.AdamWStep;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceBuffer;
import dev.penstock.cuda.device.DeviceLostException;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.DeviceSettings.Gemm;
import dev.penstock.cuda.device.DeviceSettings.Kind;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.kernels.HostMatrix;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Driver calls when work repeats, and their results. */
class GpuGraphsTest {
    private static final DeviceSettings GPU =
            DeviceSettings.DEFAULTS.withKind(Kind.CUDA).withGraphs(true);
    private static final int MOST_GRAPHS = 256;

    @BeforeEach
    void gpus() {
        EmulatedGpus.requireEmulated();
    }

    @AfterEach
    void noFaults() {
        EmulatedGpus.set("FAIL_LAUNCH", "");
        EmulatedGpus.set("LOSE_DEVICE", "");
        EmulatedGpus.set("COPY_MILLIS", "");
    }

    @ParameterizedTest
    @EnumSource(names = {"CUBLAS", "KERNELS"})
    void whatComesAgainIsOneLaunch(Gemm gemm) {
        try (Device device = GpuDevice.open(GPU.withGemm(gemm))) {
            Op op = new Op(device);

            assertThat(op.launches()).isEqualTo(Op.WORKS);
            assertThat(op.launches()).isEqualTo(1);
            assertThat(op.launches()).isEqualTo(1);
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"CUBLAS", "KERNELS"})
    void theResultsAreThoseOfSingleLaunches(Gemm gemm) {
        assertThat(afterFourTimes(GPU.withGemm(gemm)))
                .isEqualTo(afterFourTimes(GPU.withGemm(gemm).withGraphs(false)));
    }

    private static float[] afterFourTimes(DeviceSettings settings) {
        try (Device device = GpuDevice.open(settings)) {
            Op op = new Op(device);
            for (int i = 0; i < 4; i++) {
                op.ask();
                device.kernels().finish();
            }
            return op.y.contents().toArray(ValueLayout.JAVA_FLOAT);
        }
    }

    @Test
    void otherAddressesAreOtherGraphs() {
        try (Device device = GpuDevice.open(GPU)) {
            Op here = new Op(device);
            Op there = new Op(device);
            here.launches();
            here.launches();

            assertThat(there.launches()).isEqualTo(Op.WORKS);
            assertThat(there.launches()).isEqualTo(1);
            assertThat(here.launches()).isEqualTo(1);
        }
    }

    /** An update's numbers follow the step. */
    @Test
    void whatNeverComesAgainIsNoGraph() {
        try (Device device = GpuDevice.open(GPU)) {
            DeviceScope memory = device.memory();
            Tensor w = memory.tensor("w", DType.F32, 1, 8);
            Tensor g = memory.tensor("g", DType.F32, 1, 8);
            Tensor m = memory.tensor("m", DType.F32, 1, 8);
            Tensor v = memory.tensor("v", DType.F32, 1, 8);
            long live = EmulatedGpus.live();

            for (int t = 1; t <= 10; t++) {
                for (int parameter = 0; parameter < 3; parameter++) {
                    device.kernels()
                            .adamW(w, g, m, v, new AdamWStep(t, 0.1, 0.9, 0.99, 1e-8, 0.1, 1));
                }
                device.kernels().finish();
            }

            assertThat(EmulatedGpus.live()).isEqualTo(live);
        }
    }

    @Test
    void graphsAreSoMany() {
        try (Device device = GpuDevice.open(GPU);
                DeviceScope memory = device.memory().child("many", Long.MAX_VALUE)) {
            Tensor x = memory.tensor("x", DType.F32, 1, MOST_GRAPHS + 50);
            device.kernels().finish();
            long live = EmulatedGpus.live();

            for (int round = 0; round < 3; round++) {
                for (int i = 0; i < x.columns(); i++) {
                    for (int work = 0; work < 3; work++) {
                        device.kernels().zero(x.columns(i, 1));
                    }
                    device.kernels().finish();
                }
            }

            assertThat(EmulatedGpus.live() - live).isEqualTo(MOST_GRAPHS);
        }
    }

    @Test
    void closingGivesGraphsBack() {
        long before = EmulatedGpus.live();

        try (Device device = GpuDevice.open(GPU);
                DeviceScope scope = device.memory().child("op", Long.MAX_VALUE)) {
            Op op = new Op(device, scope);
            op.launches();
            op.launches();
            op.ask(); // nobody waits for it
        }

        assertThat(EmulatedGpus.live()).isEqualTo(before);
    }

    /** The emulator's freed memory is gone: enqueued work is done before. */
    @Test
    void memoryIsFreedWhenWhatUsesItIsDone() {
        try (Device device = GpuDevice.open(GPU)) {
            Tensor kept = device.memory().tensor("kept", DType.F32, 1, 3);
            DeviceScope step = device.memory().child("step", Long.MAX_VALUE);
            Tensor ones = step.tensor("ones", DType.F32, 1, 3);
            ones.write(MemorySegment.ofArray(new float[] {1, 2, 3}));

            device.kernels().copy(ones, kept);
            step.close();

            assertThat(kept.contents().toArray(ValueLayout.JAVA_FLOAT)).containsExactly(1, 2, 3);
        }
    }

    /** A copy that did not wait for earlier work would take the old contents. */
    @Test
    void copiesAreInOrderWithWhatIsCollected() {
        EmulatedGpus.set("COPY_MILLIS", "20");
        try (Device device = GpuDevice.open(GPU)) {
            Op op = new Op(device);
            DeviceBuffer slot = device.memory().allocateStaged("slot", op.y.bytes());
            Tensor copy = Tensor.of(slot, DType.F32, Op.SIZE, Op.SIZE);
            for (int time = 1; time <= 3; time++) {
                op.ask();
                device.kernels().copy(op.y, copy);
                slot.beginToHost(copy.bytes());
                GpuDeviceTest.awaitCopy(slot);

                float[] expected = op.y.contents().toArray(ValueLayout.JAVA_FLOAT);
                assertThat(copy.staging().toArray(ValueLayout.JAVA_FLOAT)).isEqualTo(expected);
                slot.beginToDevice(copy.bytes());
                slot.kernelsAwaitCopy();
                GpuDeviceTest.awaitCopy(slot);
            }
        }
    }

    /** A copy within a capture would be in the graph, and its wait would end it. */
    @Test
    void anotherThreadCopiesWhileSequencesAreCaptured() throws Exception {
        var enough = new AtomicBoolean();
        try (Device device = GpuDevice.open(GPU);
                ExecutorService threads = Executors.newSingleThreadExecutor()) {
            Tensor other = device.memory().tensor("other", DType.F32, 1, 1000);
            Future<?> copying =
                    threads.submit(
                            () -> {
                                for (int i = 1; !enough.get(); i++) {
                                    other.columns(i % 1000, 1)
                                            .write(MemorySegment.ofArray(new float[] {i}));
                                    float[] all = other.contents().toArray(ValueLayout.JAVA_FLOAT);
                                    assertThat(all[i % 1000]).isEqualTo(i);
                                }
                            });
            float[] expected = afterFourTimes(GPU.withGraphs(false));
            try {
                for (int i = 0; i < 100; i++) {
                    Op op = new Op(device);
                    for (int time = 0; time < 4; time++) {
                        op.ask();
                        device.kernels().finish();
                    }
                    assertThat(op.y.contents().toArray(ValueLayout.JAVA_FLOAT)).isEqualTo(expected);
                }
            } finally {
                enough.set(true);
            }
            copying.get(60, TimeUnit.SECONDS);
        }
    }

    @Test
    void aKernelThatFailsWithinAGraphIsNamed() {
        try (Device device = GpuDevice.open(GPU)) {
            Op op = new Op(device);
            op.launches();
            op.launches();
            EmulatedGpus.set("FAIL_LAUNCH", "0:2");

            op.ask();
            assertThatThrownBy(() -> device.kernels().finish())
                    .isInstanceOf(DeviceLostException.class)
                    .hasMessageContaining("waiting for kernels (zero, ")
                    .hasMessageContaining("addBias")
                    .hasMessageContaining("on GPU 0: the driver answers CUDA_ERROR_LAUNCH_FAILED");
        }
    }

    @Test
    void aGpuThatIsLostWithinAGraphIsNamed() {
        long before = EmulatedGpus.live();
        Device device = GpuDevice.open(GPU.withGpu(3));
        DeviceScope scope = device.memory().child("op", Long.MAX_VALUE);
        Op op = new Op(device, scope);
        op.launches();
        op.launches();
        EmulatedGpus.set("LOSE_DEVICE", "3:2");

        op.ask();
        assertThatThrownBy(() -> device.kernels().finish())
                .isInstanceOf(DeviceLostException.class)
                .hasMessageContaining("starting a graph of 4 kernels (zero, ")
                .hasMessageContaining("on GPU 3: the GPU is lost");

        scope.close();
        device.close();
        assertThat(EmulatedGpus.live()).isEqualTo(before);
    }

    /** Four kernels, one of them a product. */
    private static final class Op {
        static final int WORKS = 4;
        static final int SIZE = 4;

        final Kernels kernels;
        final Tensor x;
        final Tensor y;
        final Tensor bias;
        final Tensor product;

        Op(Device device) {
            this(device, device.memory());
        }

        Op(Device device, DeviceScope memory) {
            kernels = device.kernels();
            x = memory.tensor("x", DType.F32, SIZE, SIZE);
            y = memory.tensor("y", DType.F32, SIZE, SIZE);
            bias = memory.tensor("bias", DType.F32, 1, SIZE);
            product = memory.tensor("product", DType.F32, SIZE, SIZE);
            HostMatrix.of(x).setAllRows(rows(SIZE, 1));
            HostMatrix.of(bias).setAllRows(rows(1, 0.25f));
        }

        /** Multiples of a number, row by row. */
        private static float[][] rows(int count, float each) {
            float[][] rows = new float[count][SIZE];
            for (int i = 0; i < count * SIZE; i++) {
                rows[i / SIZE][i % SIZE] = each * i;
            }
            return rows;
        }

        void ask() {
            kernels.zero(product);
            kernels.addBias(x, bias);
            kernels.gemm(DType.F32, false, x, true, x, product, true);
            kernels.add(product, y);
        }

        /** How often the driver was called. */
        long launches() {
            kernels.finish();
            long before = EmulatedGpus.launches();
            ask();
            kernels.finish();
            return EmulatedGpus.launches() - before;
        }
    }
}
