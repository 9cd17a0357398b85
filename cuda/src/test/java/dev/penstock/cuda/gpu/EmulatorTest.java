package dev.penstock.cuda.gpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.cuda.EmulatedGpus;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.DeviceSettings.Kind;
import java.util.List;
import jcuda.CudaException;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUevent;
import jcuda.driver.CUevent_flags;
import jcuda.driver.CUgraph;
import jcuda.driver.CUstream;
import jcuda.driver.CUstreamCaptureMode;
import jcuda.driver.JCudaDriver;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The emulator finds the errors that it exists to find. */
class EmulatorTest {

    @BeforeAll
    static void gpus() {
        EmulatedGpus.requireEmulated();
    }

    /** GPU 0 runs threads forward, GPU 1 in reverse. */
    @Test
    void aMissingBarrierShowsWhenThreadsRunInAnotherOrder() {
        assertThat(PlantedKernels.run("missingBarrier", 0, 1))
                .isNotEqualTo(PlantedKernels.run("missingBarrier", 1, 1));
    }

    @ParameterizedTest
    @ValueSource(strings = {"divergentBarrier", "wrongMask"})
    void threadsThatDoNotMeetFailTheKernel(String kernel) {
        assertThatThrownBy(() -> PlantedKernels.run(kernel, 3, 1))
                .hasMessageContaining("CUDA_ERROR_LAUNCH_FAILED");
    }

    /** A GPU refuses such an access, and the CPU that emulates it would not. */
    @ParameterizedTest
    @CsvSource({
        "misalignedLoad, 4 bytes past a multiple of 16",
        "misalignedStore, 4 bytes past a multiple of 8",
        "misalignedCopy, 8 bytes past a multiple of 16"
    })
    void anAccessAtNoMultipleOfItsSizeFailsTheKernel(String kernel, String wrong) {
        assertThatThrownBy(() -> PlantedKernels.run(kernel, 3, 1))
                .hasMessageContaining("CUDA_ERROR_LAUNCH_FAILED");
        assertThat(EmulatedGpus.failure()).contains("kernel " + kernel).contains(wrong);
    }

    @Test
    void ptxThatIsNotOfTheSourcesIsRefused() {
        try (Device _ = open(3)) {
            assertThatThrownBy(
                            () ->
                                    PlantedKernels.module(
                                            PlantedKernels.entry("missingBarrier", ".u32")))
                    .isInstanceOf(CudaException.class)
                    .hasMessageContaining("CUDA_ERROR_INVALID_PTX");
            assertThatThrownBy(
                            () ->
                                    PlantedKernels.module(
                                            PlantedKernels.entry("noSuchKernel", ".u64")))
                    .hasMessageContaining("CUDA_ERROR_INVALID_PTX");
        }
    }

    /** Waiting for a stream, allocating and freeing end a capture. */
    @Test
    void captureIsEndedByWhatWaits() {
        try (Device _ = open(3)) {
            GpuContext context = new GpuContext(3);
            for (Runnable waiting :
                    List.<Runnable>of(
                            () -> JCudaDriver.cuStreamSynchronize(context.stream()),
                            () -> JCudaDriver.cuStreamQuery(context.stream()),
                            JCudaDriver::cuCtxSynchronize,
                            () -> JCudaDriver.cuMemAlloc(new CUdeviceptr(), 100))) {
                begin(context.stream());
                assertThatThrownBy(waiting::run)
                        .hasMessage("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED");
                assertThatThrownBy(() -> end(context.stream()))
                        .hasMessage("CUDA_ERROR_STREAM_CAPTURE_INVALIDATED");
            }
            assertThatThrownBy(() -> begin(new CUstream()))
                    .hasMessage("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED");
            assertThatThrownBy(() -> end(context.stream())).hasMessage("CUDA_ERROR_ILLEGAL_STATE");
            JCudaDriver.cuStreamSynchronize(context.stream());
            context.close();
        }
    }

    /** Another stream joins by an event and must be waited for; events from outside are refused. */
    @Test
    void eventsCrossStreamsWithinACapture() {
        try (Device _ = open(3)) {
            GpuContext context = new GpuContext(3);
            CopyStreams others = new CopyStreams(context);
            CUevent event = event();
            Runnable fork =
                    () -> {
                        JCudaDriver.cuEventRecord(event, context.stream());
                        JCudaDriver.cuStreamWaitEvent(others.toHost(), event, 0);
                    };
            DevicePointer memory = new DevicePointer();
            JCudaDriver.cuMemAlloc(memory, 4);

            begin(context.stream());
            fork.run();
            JCudaDriver.cuMemsetD8Async(memory, (byte) 1, 4, others.toHost());
            assertThatThrownBy(() -> end(context.stream()))
                    .hasMessage("CUDA_ERROR_STREAM_CAPTURE_UNJOINED");

            begin(context.stream());
            fork.run();
            JCudaDriver.cuMemsetD8Async(memory, (byte) 1, 4, others.toHost());
            assertThatThrownBy(() -> JCudaDriver.cuEventQuery(event))
                    .hasMessage("CUDA_ERROR_CAPTURED_EVENT");
            assertThatThrownBy(() -> end(others.toHost()))
                    .hasMessage("CUDA_ERROR_STREAM_CAPTURE_UNMATCHED");
            JCudaDriver.cuEventRecord(event, others.toHost());
            JCudaDriver.cuStreamWaitEvent(context.stream(), event, 0);
            end(context.stream());

            JCudaDriver.cuEventRecord(event, others.toHost());
            begin(context.stream());
            assertThatThrownBy(() -> JCudaDriver.cuStreamWaitEvent(context.stream(), event, 0))
                    .hasMessage("CUDA_ERROR_STREAM_CAPTURE_ISOLATION");
            assertThatThrownBy(() -> end(context.stream()))
                    .hasMessage("CUDA_ERROR_STREAM_CAPTURE_INVALIDATED");

            JCudaDriver.cuEventDestroy(event);
            JCudaDriver.cuMemFree(memory);
            others.close();
            context.close();
        }
    }

    private static CUevent event() {
        CUevent event = new CUevent();
        JCudaDriver.cuEventCreate(event, CUevent_flags.CU_EVENT_DISABLE_TIMING);
        return event;
    }

    private static void begin(CUstream stream) {
        JCudaDriver.cuStreamBeginCapture(
                stream, CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    }

    private static void end(CUstream stream) {
        CUgraph graph = new CUgraph();
        JCudaDriver.cuStreamEndCapture(stream, graph);
        JCudaDriver.cuGraphDestroy(graph);
    }

    private static Device open(int gpu) {
        return GpuDevice.open(DeviceSettings.DEFAULTS.withKind(Kind.CUDA).withGpu(gpu));
    }
}
