package dev.penstock.cuda.gpu;

import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.DeviceLostException;
import java.io.IOException;
import java.io.InputStream;
import java.util.Arrays;
import java.util.Optional;
import jcuda.CudaException;
import jcuda.driver.CUfunction;
import jcuda.driver.CUfunction_attribute;
import jcuda.driver.CUmodule;
import jcuda.driver.JCudaDriver;

/**
 * The kernels of a GPU: machine code that ships for its generation, or PTX that the driver compiles
 * where none ships or an older driver does not take it.
 */
final class GpuModule implements AutoCloseable {
    /** {@code none} has the driver compile the PTX. */
    static final String CUBINS_PROPERTY = "penstock.cubins";

    private static final String PTX = "kernels.ptx";

    private final GpuContext gpu;
    private final CUmodule module = new CUmodule();
    private final String form;

    /** A kernel, ready to launch. */
    record Function(String name, CUfunction handle) {}

    /**
     * @param majorCapability machine code of its first minor number runs on all with this number
     */
    GpuModule(GpuContext gpu, int majorCapability) {
        this.gpu = gpu;
        String architecture = "sm_" + majorCapability + "0";
        if (loadedCubin(architecture)) {
            form = architecture;
            return;
        }
        form = "ptx";
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

    private boolean loadedCubin(String architecture) {
        if ("none".equals(System.getProperty(CUBINS_PROPERTY))) {
            return false;
        }
        Optional<byte[]> cubin = resource(cubin(architecture));
        if (cubin.isEmpty()) {
            return false;
        }
        try {
            gpu.bind();
            JCudaDriver.cuModuleLoadData(module, cubin.get());
            return true;
        } catch (CudaException e) {
            if (GpuFailure.of("loading the kernels for GPU " + gpu.index(), e)
                    instanceof DeviceLostException lost) {
                throw lost;
            }
            System.getLogger(GpuModule.class.getName())
                    .log(
                            System.Logger.Level.INFO,
                            "GPU {0}: its driver does not take the machine code for {1} ({2}), which drivers from CUDA 13 on do, and compiles the PTX instead: this takes longer, and the compiler of another version may round otherwise",
                            gpu.index(),
                            architecture,
                            e.getMessage());
            return false;
        }
    }

    /** What runs: {@code sm_90} or another architecture's machine code, or {@code ptx}. */
    String form() {
        return form;
    }

    /** The resource with the machine code of an architecture. */
    static String cubin(String architecture) {
        return "kernels-" + architecture + ".cubin";
    }

    private static String driverVersion() {
        int[] version = new int[1];
        JCudaDriver.cuDriverGetVersion(version);
        return version[0] / 1_000 + "." + version[0] % 1_000 / 10;
    }

    /** The shipped PTX; its first line tells the hash of the sources. */
    static byte[] ptx() {
        return resource(PTX)
                .orElseThrow(
                        () -> new DeviceException("there is no " + PTX + " on the class path"));
    }

    private static Optional<byte[]> resource(String name) {
        try (InputStream in = GpuModule.class.getResourceAsStream(name)) {
            return in == null ? Optional.empty() : Optional.of(in.readAllBytes());
        } catch (IOException e) {
            throw new DeviceException("reading " + name, e);
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
