package dev.penstock.cuda.gpu;

import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.DeviceLostException;
import java.io.IOException;
import java.io.InputStream;
import java.util.Arrays;
import jcuda.CudaException;
import jcuda.driver.CUfunction;
import jcuda.driver.CUfunction_attribute;
import jcuda.driver.CUmodule;
import jcuda.driver.JCudaDriver;

/** The kernels of a GPU: PTX that the driver compiles for it. */
final class GpuModule implements AutoCloseable {
    private static final String PTX = "kernels.ptx";

    private final GpuContext gpu;
    private final CUmodule module = new CUmodule();

    /** A kernel, ready to launch. */
    record Function(String name, CUfunction handle) {}

    GpuModule(GpuContext gpu) {
        this.gpu = gpu;
        // the driver reads to the first NUL
        byte[] ptx = ptx();
        byte[] text = Arrays.copyOf(ptx, ptx.length + 1);
        try {
            gpu.bind();
            JCudaDriver.cuModuleLoadData(module, text);
        } catch (CudaException e) {
            throw GpuFailure.of(
                    "compiling the kernels for GPU %d by a driver of CUDA %s (needed: 11.0 or later)"
                            .formatted(gpu.index(), driverVersion()),
                    e);
        }
    }

    private static String driverVersion() {
        int[] version = new int[1];
        JCudaDriver.cuDriverGetVersion(version);
        return version[0] / 1_000 + "." + version[0] % 1_000 / 10;
    }

    /** The shipped PTX; its first line tells the hash of the sources. */
    static byte[] ptx() {
        try (InputStream in = GpuModule.class.getResourceAsStream(PTX)) {
            if (in == null) {
                throw new DeviceException("there is no " + PTX + " on the class path");
            }
            return in.readAllBytes();
        } catch (IOException e) {
            throw new DeviceException("reading " + PTX, e);
        }
    }

    Function function(String name) {
        CUfunction handle = new CUfunction();
        try {
            gpu.bind();
            JCudaDriver.cuModuleGetFunction(handle, module, name);
        } catch (CudaException e) {
            throw GpuFailure.of("looking for kernel %s on GPU %d".formatted(name, gpu.index()), e);
        }
        return new Function(name, handle);
    }

    /** Never throws: that of a lost GPU closes too. */
    @Override
    public void close() {
        gpu.finishAnyway();
        gpu.giveBack("its kernels", () -> JCudaDriver.cuModuleUnload(module));
    }

    /** A kernel that uses more shared memory than every GPU gives unasked. */
    Function function(String name, int sharedBytes) {
        Function function = function(name);
        try {
            JCudaDriver.cuFuncSetAttribute(
                    function.handle(),
                    CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                    sharedBytes);
        } catch (CudaException e) {
            if (GpuFailure.of("preparing kernel %s on GPU %d".formatted(name, gpu.index()), e)
                    instanceof DeviceLostException lost) {
                throw lost;
            }
            throw new DeviceException(
                    "kernel %s: expected a GPU with %,d bytes of shared memory per block, got %s from GPU %d"
                            .formatted(name, sharedBytes, e.getMessage(), gpu.index()),
                    e);
        }
        return function;
    }
}
