package dev.penstock.cuda.gpu;

import dev.penstock.cuda.device.DeviceException;
import jcuda.CudaException;

/** What the driver refuses, in our words. */
final class GpuFailure {
    private GpuFailure() {}

    /**
     * A kernel that goes wrong shows at a later call, and everything after it fails too.
     *
     * @param doing what was being done, and on which GPU
     */
    static DeviceException of(String doing, CudaException e) {
        return new DeviceException(
                "%s: the driver answers %s; a kernel that failed before shows here, and its GPU is of no use to this process any more"
                        .formatted(doing, e.getMessage()),
                e);
    }
}
