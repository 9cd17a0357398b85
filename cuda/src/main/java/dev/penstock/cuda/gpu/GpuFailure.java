package dev.penstock.cuda.gpu;

import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.DeviceLostException;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import jcuda.CudaException;
import jcuda.driver.CUresult;

/** What the driver refuses, in our words. */
final class GpuFailure {
    /** Answers of a driver whose GPU is gone or not to be trusted any more. */
    private static final Set<String> GONE =
            names(
                    CUresult.CUDA_ERROR_DEVICE_UNAVAILABLE,
                    CUresult.CUDA_ERROR_ECC_UNCORRECTABLE,
                    CUresult.CUDA_ERROR_NVLINK_UNCORRECTABLE,
                    CUresult.CUDA_ERROR_EXTERNAL_DEVICE,
                    CUresult.CUDA_ERROR_UNKNOWN);

    /** Answers after which, the driver's manual says, the process must end to use the GPU again. */
    private static final Set<String> STAYS =
            names(
                    CUresult.CUDA_ERROR_ILLEGAL_ADDRESS,
                    CUresult.CUDA_ERROR_LAUNCH_TIMEOUT,
                    CUresult.CUDA_ERROR_CONTEXT_IS_DESTROYED,
                    CUresult.CUDA_ERROR_ASSERT,
                    CUresult.CUDA_ERROR_HARDWARE_STACK_ERROR,
                    CUresult.CUDA_ERROR_ILLEGAL_INSTRUCTION,
                    CUresult.CUDA_ERROR_MISALIGNED_ADDRESS,
                    CUresult.CUDA_ERROR_INVALID_ADDRESS_SPACE,
                    CUresult.CUDA_ERROR_INVALID_PC,
                    CUresult.CUDA_ERROR_LAUNCH_FAILED);

    private GpuFailure() {}

    private static Set<String> names(int... results) {
        return IntStream.of(results)
                .mapToObj(CUresult::stringFor)
                .collect(Collectors.toUnmodifiableSet());
    }

    /**
     * A kernel that goes wrong shows at a later call, and everything after it fails too.
     *
     * @param doing what was being done, and on which GPU
     * @return a {@link DeviceLostException} if this process cannot use the GPU any more
     */
    static DeviceException of(String doing, CudaException e) {
        String answer = String.valueOf(e.getMessage());
        if (GONE.contains(answer)) {
            return new DeviceLostException(
                    "%s: the GPU is lost, the driver answers %s".formatted(doing, answer), true, e);
        }
        if (STAYS.contains(answer)) {
            return new DeviceLostException(
                    "%s: the driver answers %s; a kernel that failed before shows here, and its GPU is of no use to this process any more"
                            .formatted(doing, answer),
                    false,
                    e);
        }
        return new DeviceException("%s: the driver answers %s".formatted(doing, answer), e);
    }
}
