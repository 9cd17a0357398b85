package dev.penstock.cuda.gpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.cuda.Devices;
import dev.penstock.cuda.EmulatedGpus;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceBuffer;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.DeviceLostException;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.DeviceSettings.Gemm;
import dev.penstock.cuda.device.DeviceSettings.Kind;
import dev.penstock.cuda.device.Gpus;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.IntStream;
import jcuda.CudaException;
import jcuda.driver.CUcontext;
import jcuda.driver.CUdevice;
import jcuda.driver.JCudaDriver;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Memory, threads and faults of the GPU device. */
class GpuDeviceTest {
    private static final DeviceSettings GPU = DeviceSettings.DEFAULTS.withKind(Kind.CUDA);
    private static final int MIB = 1 << 20;

    @BeforeEach
    void gpus() {
        EmulatedGpus.requireEmulated();
    }

    @AfterEach
    void noFaults() {
        EmulatedGpus.set("FAIL_LAUNCH", "");
        EmulatedGpus.set("LOSE_DEVICE", "");
        EmulatedGpus.set("MEMORY_MIB", "");
        EmulatedGpus.set("LOSE_AT_HOST_COPY", "");
        EmulatedGpus.set("NO_PEERS", "");
        EmulatedGpus.set("COPY_MILLIS", "");
        EmulatedGpus.set("CAPABILITY", "");
        EmulatedGpus.set("DRIVER", "");
        System.clearProperty(GpuModule.CUBINS_PROPERTY);
    }

    @Test
    void aDriverThatIsTooOldForTheKernelsSaysWhichItIs() {
        EmulatedGpus.set("DRIVER", "10020");

        assertThatThrownBy(() -> GpuDevice.open(GPU))
                .isInstanceOf(DeviceException.class)
                .hasMessageContaining("by a driver of CUDA 10.2 (needed: 11.0 or later)");
    }

    /** The emulator's fresh memory is NaN. */
    @Test
    void freshMemoryIsZeroAndAligned() {
        try (Device device = GpuDevice.open(GPU)) {
            Tensor tensor = device.memory().tensor("t", DType.F32, 3, 100);

            assertThat(tensor.address() % 64).isZero();
            assertThat(tensor.contents().toArray(ValueLayout.JAVA_INT)).containsOnly(0);
        }
    }

    @Test
    void closingGivesEverythingBack() {
        long before = freeBytes(0);

        try (Device device = GpuDevice.open(GPU)) {
            DeviceScope scope = device.memory().child("model", Long.MAX_VALUE);
            Tensor x = scope.tensor("x", DType.F32, 100, 100);
            device.kernels().squaredNorm(x);
            device.kernels().biasGradient(x, scope.tensor("b", DType.F32, 1, 100), rows(100));

            assertThat(freeBytes(0)).isLessThan(before);
            assertThatThrownBy(device::close)
                    .isInstanceOf(DeviceException.class)
                    .hasMessageContaining("scope 'model'")
                    .hasMessageContaining("'x' 40,000 bytes");
            scope.close();
        }

        assertThat(freeBytes(0)).isEqualTo(before);
    }

    private static TokenBlocks rows(int rows) {
        return new TokenBlocks(1, rows, 0, 16);
    }

    /** Copies take long: code that did not wait for one would see the old contents. */
    @Test
    void copiesOfStagedMemoryAreInOrderWithKernels() {
        EmulatedGpus.set("COPY_MILLIS", "50");
        try (Device device = GpuDevice.open(GPU)) {
            Tensor ones = device.memory().tensor("ones", DType.F32, 1, 100);
            ones.write(MemorySegment.ofArray(filled(100, 1)));
            DeviceBuffer slot = device.memory().allocateStaged("slot", 400);
            Tensor x = Tensor.of(slot, DType.F32, 1, 100);

            device.kernels().copy(ones, x);
            slot.beginToHost(x.bytes());
            awaitCopy(slot);
            assertThat(x.staging().toArray(ValueLayout.JAVA_FLOAT)).containsOnly(1);

            x.staging().copyFrom(MemorySegment.ofArray(filled(100, 2)));
            slot.beginToDevice(x.bytes());
            slot.kernelsAwaitCopy();
            assertThat(device.kernels().squaredNorm(x)).isEqualTo(400);
            awaitCopy(slot);
        }
    }

    private static float[] filled(int count, float value) {
        float[] values = new float[count];
        Arrays.fill(values, value);
        return values;
    }

    static void awaitCopy(DeviceBuffer slot) {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        while (!slot.isCopied()) {
            assertThat(System.nanoTime()).isLessThan(deadline);
            Thread.onSpinWait();
        }
    }

    /** The emulator frees at once: a copy still running would crash the process. */
    @Test
    void memoryUnderACopyIsFreedWhenTheCopyIsDone() {
        long before = freeBytes(0);
        EmulatedGpus.set("COPY_MILLIS", "50");

        try (Device device = GpuDevice.open(GPU)) {
            DeviceScope links = device.memory().child("links", Long.MAX_VALUE);
            DeviceBuffer sent = links.allocateStaged("sent", MIB);
            DeviceBuffer taken = links.allocateStaged("taken", MIB);
            MemorySegment held = sent.staging();
            sent.beginToHost(MIB);
            taken.beginToDevice(MIB);
            links.close();

            assertThatThrownBy(() -> held.get(ValueLayout.JAVA_FLOAT, 0))
                    .isInstanceOf(IllegalStateException.class);
            assertThatThrownBy(() -> sent.beginToHost(MIB))
                    .hasMessageContaining("use of buffer 'sent' of scope 'gpu 0/links'");
        }

        assertThat(freeBytes(0)).isEqualTo(before);
    }

    /** Its address means nothing to a GPU. */
    @Test
    void memoryOfAnotherDeviceIsRefused() {
        try (Device device = GpuDevice.open(GPU);
                Device cpu = Devices.open(DeviceSettings.DEFAULTS)) {
            Tensor here = device.memory().tensor("here", DType.F32, 4, 4);
            Tensor there = cpu.memory().tensor("there", DType.F32, 4, 4);

            assertThatThrownBy(() -> device.kernels().add(there, here))
                    .isInstanceOf(DeviceException.class)
                    .hasMessageContaining("expected memory of a GPU");
            assertThatThrownBy(
                            () ->
                                    device.kernels()
                                            .gemm(DType.F32, false, here, false, there, here, true))
                    .hasMessageContaining("expected memory of a GPU");
        }
    }

    @Test
    void outOfMemoryIsOneClearErrorAndTheDeviceGoesOn() {
        EmulatedGpus.set("MEMORY_MIB", "8");
        try (Device device = GpuDevice.open(GPU)) {
            assertThatThrownBy(() -> device.memory().allocate("activations", 9 * MIB))
                    .isInstanceOf(DeviceException.class)
                    .hasMessageContaining("allocating 'activations' in scope 'gpu 0'")
                    .hasMessageContaining("no room for 9,437,184 bytes")
                    .hasMessageContaining("of its 8,388,608 bytes left")
                    .hasMessageContaining("make the work smaller");

            Tensor small = device.memory().tensor("small", DType.F32, 1, 1000);
            assertThat(device.kernels().allFinite(small)).isTrue();
        }
        assertThat(freeBytes(0)).isEqualTo(8 * MIB);
    }

    /** By another device of the same GPU: a limit of one's own would not know. */
    @Test
    void memoryThatOthersTookIsCountedToo() {
        EmulatedGpus.set("MEMORY_MIB", "64");
        try (Device device = GpuDevice.open(GPU);
                Device other = GpuDevice.open(GPU)) {
            other.memory().allocate("weights", 40 * MIB);

            assertThatThrownBy(() -> device.memory().allocate("moments", 40 * MIB))
                    .isInstanceOf(DeviceException.class)
                    .hasMessageContaining("allocating 'moments' in scope 'gpu 0'")
                    .hasMessageContaining("of its 67,108,864 bytes left");
        }
    }

    /** The driver's manual promises no wait; the emulator fills freed memory with NaN. */
    @Test
    void memoryUnderAKernelIsFreedWhenTheKernelIsDone() {
        EmulatedGpus.set("COPY_MILLIS", "200");
        try (Device device = GpuDevice.open(GPU)) {
            DeviceScope step = device.memory().child("step", Long.MAX_VALUE);
            Tensor x = step.tensor("x", DType.F32, 1, 1000);
            x.write(MemorySegment.ofArray(filled(1000, 3)));
            Tensor y = device.memory().tensor("y", DType.F32, 1, 1000);
            letKernelsWait(device);

            device.kernels().copy(x, y);
            step.close();

            assertThat(y.contents().toArray(ValueLayout.JAVA_FLOAT)).containsOnly(3);
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aGpuThatIsLostDuringACopyIsNamed(boolean reading) {
        long before = EmulatedGpus.live();
        try (Device device = GpuDevice.open(GPU.withGpu(3))) {
            Tensor weight = device.memory().tensor("weight", DType.F32, 1, 1000);
            EmulatedGpus.set("LOSE_AT_HOST_COPY", reading ? "3:2" : "3:1");

            assertThatThrownBy(
                            () -> {
                                weight.write(MemorySegment.ofArray(filled(1000, 1)));
                                weight.contents();
                            })
                    .isInstanceOfSatisfying(
                            DeviceLostException.class, e -> assertThat(e.isGone()).isTrue())
                    .hasMessageContaining("GPU 3: the GPU is lost");
            assertThatThrownBy(() -> weight.write(MemorySegment.ofArray(filled(1000, 1))))
                    .isInstanceOf(DeviceLostException.class)
                    .hasMessageContaining("copying to 'weight' of GPU 3");
        }
        assertThat(EmulatedGpus.live()).isEqualTo(before);
    }

    /** As ranks of one process sum: the driver would refuse a copy without access. */
    @Test
    void kernelsUseTheMemoryOfOtherGpusThatTheySee() {
        try (Device device = GpuDevice.open(GPU);
                Device other = GpuDevice.open(GPU.withGpu(1))) {
            Tensor here = device.memory().tensor("here", DType.F32, 1, 100);
            Tensor there = other.memory().tensor("there", DType.F32, 1, 100);
            there.write(MemorySegment.ofArray(filled(100, 2)));
            other.kernels().finish();
            device.kernels().add(there, here);

            assertThat(device.kernels().squaredNorm(here)).isEqualTo(400);
            GpuContext from = new GpuContext(0);
            GpuContext to = new GpuContext(1);
            from.bind();
            assertThatThrownBy(() -> JCudaDriver.cuCtxEnablePeerAccess(to.handle(), 0))
                    .hasMessage("CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED");
            to.close();
            from.close();
        }
    }

    @Test
    void kernelsRefuseTheMemoryOfGpusThatTheyDoNotSee() {
        EmulatedGpus.set("NO_PEERS", "1");
        try (Device device = GpuDevice.open(GPU);
                Device same = GpuDevice.open(GPU);
                Device other = GpuDevice.open(GPU.withGpu(2))) {
            Tensor here = device.memory().tensor("here", DType.F32, 1, 100);
            device.kernels().add(same.memory().tensor("there", DType.F32, 1, 100), here);

            Tensor there = other.memory().tensor("there", DType.F32, 1, 100);
            assertThatThrownBy(() -> device.kernels().add(there, here))
                    .isInstanceOf(DeviceException.class)
                    .hasMessageContaining(
                            "kernels of GPU 0: expected memory that they can use, but 'there' is on"
                                    + " GPU 2");
        }
    }

    /** As in a folder mounted noexec: one line, and no stack trace of JCuda's. */
    @Test
    void aLibraryThatDoesNotLoadIsSaidInOneLine(@TempDir Path folder) throws IOException {
        Path library = JcudaLibrary.place(folder);
        Files.write(library, new byte[(int) Files.size(library)]);

        assertThatThrownBy(() -> JcudaLibrary.load(folder))
                .isInstanceOf(UnsatisfiedLinkError.class)
                .hasMessageContaining(folder.toString())
                .hasMessageNotContaining("\n");
    }

    /** For the duration of a copy. */
    private static void letKernelsWait(Device device) {
        DeviceBuffer slot = device.memory().allocateStaged("slot", 4);
        slot.beginToDevice(4);
        slot.kernelsAwaitCopy();
    }

    /** A thread that waits meanwhile waits only for its own work. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void whatOneThreadAskedForIsNotTakenForDoneBecauseAnotherWaited(boolean graphs)
            throws Exception {
        var enough = new AtomicBoolean();
        try (Device device = GpuDevice.open(GPU.withGraphs(graphs));
                ExecutorService threads = Executors.newSingleThreadExecutor()) {
            Tensor x = device.memory().tensor("x", DType.F32, 1, 1000);
            Tensor y = device.memory().tensor("y", DType.F32, 1, 1000);
            x.write(MemorySegment.ofArray(filled(1000, 1)));
            // a copy would wait too; the emulator's memory is the host's
            MemorySegment sums = MemorySegment.ofAddress(y.address()).reinterpret(y.bytes());
            Future<?> other =
                    threads.submit(
                            () -> {
                                while (!enough.get()) {
                                    device.kernels().finish();
                                }
                            });

            try {
                for (int i = 1; i <= 2000; i++) {
                    device.kernels().add(x, y);
                    device.kernels().finish();
                    assertThat(sums.get(ValueLayout.JAVA_FLOAT, 3996)).isEqualTo(i);
                }
            } finally {
                enough.set(true);
            }
            other.get(60, TimeUnit.SECONDS);
        }
    }

    /** From no memory at all to almost enough for its working memory. */
    @Test
    void aDeviceThatDoesNotOpenLeavesNothingBehind() {
        long before = EmulatedGpus.live();

        for (String mebibytes : List.of("0", "1", "4", "5")) {
            EmulatedGpus.set("MEMORY_MIB", mebibytes);
            try {
                GpuDevice.open(GPU.withGemm(Gemm.CUBLAS)).close();
            } catch (DeviceException e) {
                assertThat(e).isNotInstanceOf(DeviceLostException.class);
            }
            assertThat(EmulatedGpus.live()).as(mebibytes + " MiB").isEqualTo(before);
        }
    }

    @Test
    void useAfterFreeThrows() {
        try (Device device = GpuDevice.open(GPU)) {
            DeviceScope step = device.memory().child("step", Long.MAX_VALUE);
            Tensor tensor = step.tensor("t", DType.F32, 2, 2);
            step.close();

            assertThatThrownBy(() -> device.kernels().zero(tensor))
                    .hasMessageContaining("use of buffer 't' of scope 'gpu 0/step'");
            for (ThrowingCallable use : copies(tensor)) {
                assertThatThrownBy(use)
                        .isInstanceOf(DeviceException.class)
                        .hasMessageContaining("use of buffer 't' of scope 'gpu 0/step'");
            }
        }
    }

    private static List<ThrowingCallable> copies(Tensor tensor) {
        MemorySegment there = MemorySegment.ofArray(new byte[(int) tensor.bytes()]);
        return List.of(
                tensor::contents,
                () -> tensor.buffer().read(0, there),
                () -> tensor.write(there),
                () -> tensor.writeIndices(there));
    }

    /** Contexts belong to threads: the driver refuses those that have none. */
    @Test
    void anyThreadMayUseTheDeviceAlthoughContextsBelongToThreads() throws Exception {
        try (Device device = GpuDevice.open(GPU);
                ExecutorService threads = Executors.newFixedThreadPool(2)) {
            Tensor tensor = on(threads, () -> device.memory().tensor("t", DType.F32, 1, 1000));

            assertThat(on(threads, () -> device.kernels().squaredNorm(tensor))).isZero();
            assertThatThrownBy(
                            () ->
                                    on(
                                            threads,
                                            () -> {
                                                JCudaDriver.cuCtxSetCurrent(new CUcontext());
                                                long[] bytes = new long[2];
                                                return JCudaDriver.cuMemGetInfo(bytes, bytes);
                                            }))
                    .isInstanceOf(ExecutionException.class)
                    .cause()
                    .isInstanceOf(CudaException.class)
                    .hasMessageContaining("CUDA_ERROR_INVALID_CONTEXT");
        }
    }

    private static <T> T on(ExecutorService threads, Callable<T> work) throws Exception {
        return threads.submit(work).get(60, TimeUnit.SECONDS);
    }

    @Test
    void fourGpusWorkAtTheSameTime() throws Exception {
        try (ExecutorService threads = Executors.newFixedThreadPool(4)) {
            List<Future<Double>> norms =
                    IntStream.range(0, 4)
                            .mapToObj(gpu -> threads.submit(() -> normOfOnes(gpu, 1000 + gpu)))
                            .toList();

            for (int gpu = 0; gpu < 4; gpu++) {
                assertThat(norms.get(gpu).get(60, TimeUnit.SECONDS)).isEqualTo(1000.0 + gpu);
            }
        }
    }

    private static double normOfOnes(int gpu, int elements) {
        try (Device device = GpuDevice.open(GPU.withGpu(gpu))) {
            Tensor x = device.memory().tensor("x", DType.F32, 1, elements);
            x.write(MemorySegment.ofArray(filled(elements, 1)));
            return device.kernels().squaredNorm(x);
        }
    }

    @Test
    void aKernelThatFailsBehindItsCallShowsAtTheNextWait() {
        long before = freeBytes(1);
        Device device = GpuDevice.open(GPU.withGpu(1));
        Tensor x = device.memory().tensor("x", DType.F32, 10, 10);
        EmulatedGpus.set("FAIL_LAUNCH", "1:2");

        device.kernels().add(x, x);
        device.kernels().add(x, x);
        assertThatThrownBy(() -> device.kernels().finish())
                .isInstanceOfSatisfying(
                        DeviceLostException.class, e -> assertThat(e.isGone()).isFalse())
                .hasMessageContaining("waiting for kernels on GPU 1")
                .hasMessageContaining("CUDA_ERROR_LAUNCH_FAILED");
        assertThatThrownBy(() -> device.kernels().add(x, x))
                .isInstanceOf(DeviceException.class)
                .hasMessageContaining("starting kernel add on GPU 1");

        device.close();
        assertThat(freeBytes(1)).isEqualTo(before);
        assertThat(normOfOnes(1, 10)).isEqualTo(10);
    }

    @Test
    void aLostGpuLeavesTheOthersAlone() {
        Device lost = GpuDevice.open(GPU.withGpu(2));
        try (Device other = GpuDevice.open(GPU)) {
            Tensor x = lost.memory().tensor("x", DType.F32, 10, 10);
            EmulatedGpus.set("LOSE_DEVICE", "2:1");

            assertThatThrownBy(() -> lost.kernels().add(x, x))
                    .isInstanceOfSatisfying(
                            DeviceLostException.class, e -> assertThat(e.isGone()).isTrue())
                    .hasMessageContaining("GPU 2")
                    .hasMessageContaining("CUDA_ERROR_DEVICE_UNAVAILABLE");
            lost.close();

            assertThat(other.kernels().allFinite(other.memory().tensor("y", DType.F32, 5, 5)))
                    .isTrue();
        }
    }

    @Test
    void aGpuThatOurKernelsAreTooNewForIsRefused() {
        EmulatedGpus.set("CAPABILITY", "7");

        assertThatThrownBy(() -> GpuDevice.open(GPU))
                .isInstanceOf(DeviceException.class)
                .hasMessage(
                        "opening device cuda:0: expected a GPU of compute capability 8.0 or later"
                                + " (Ampere), got emulated GPU of 7.0; try another GPU or"
                                + " device.kind = cpu");
    }

    @ParameterizedTest
    @CsvSource({
        "8, 13000, '', sm_80",
        "9, 13000, '', sm_90",
        "12, 13000, '', ptx",
        "9, 12080, '', ptx",
        "9, 13000, none, ptx"
    })
    void kernelsAreMachineCodeWhereItShipsAndTheDriverTakesIt(
            String capability, String driver, String cubins, String expected) {
        EmulatedGpus.set("CAPABILITY", capability);
        EmulatedGpus.set("DRIVER", driver);
        System.setProperty(GpuModule.CUBINS_PROPERTY, cubins);

        try (GpuDevice device = GpuDevice.open(GPU)) {
            assertThat(device.fingerprint()).contains("/" + expected + "/");
            Tensor x = device.memory().tensor("x", DType.F32, 5, 5);
            device.kernels().add(x, x);
        }
    }

    private static long freeBytes(int gpu) {
        JCudaDriver.setExceptionsEnabled(true);
        assertThat(GpuProbe.run()).isInstanceOf(Gpus.Found.class);
        CUdevice device = new CUdevice();
        CUcontext context = new CUcontext();
        JCudaDriver.cuDeviceGet(device, gpu);
        JCudaDriver.cuDevicePrimaryCtxRetain(context, device);
        JCudaDriver.cuCtxSetCurrent(context);
        long[] free = new long[1];
        JCudaDriver.cuMemGetInfo(free, new long[1]);
        JCudaDriver.cuDevicePrimaryCtxRelease(device);
        return free[0];
    }
}
