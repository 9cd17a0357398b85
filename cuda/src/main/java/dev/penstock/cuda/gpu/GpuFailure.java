package dev.penstock.cuda.gpu;

import dev.penstock.cuda.device.DeviceException;
import java.util.List;
import java.util.stream.IntStream;
import jcuda.CudaException;
import jcuda.driver.CUresult;

/** What the driver refuses, in our words. */
final class GpuFailure {
    /** Answers of a driver whose GPU is gone or not to be trusted any more. */
    private static final List<String> LOST =
            IntStream.of(
                            CUresult.CUDA_ERROR_DEVICE_UNAVAILABLE,
                            CUresult.CUDA_ERROR_ECC_UNCORRECTABLE,
                            CUresult.CUDA_ERROR_NVLINK_UNCORRECTABLE)
                    .mapToObj(CUresult::stringFor)
                    .toList();

    private GpuFailure() {}

    /**
     * A kernel that goes wrong shows at a later call, and everything after it fails too.
     *
     * @param doing what was being done, and on which GPU
     */
    static DeviceException of(String doing, CudaException e) {
        String answer = String.valueOf(e.getMessage());
        if (LOST.stream().anyMatch(answer::contains)) {
            return new DeviceException(
                    "%s: the GPU is lost, the driver answers %s".formatted(doing, answer), e);
        }
        return new DeviceException(
                "%s: the driver answers %s; a kernel that failed before shows here, and its GPU is of no use to this process any more"
                        .formatted(doing, answer),
                e);
    }
}
