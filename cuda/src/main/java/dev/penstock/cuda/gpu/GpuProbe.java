package dev.penstock.cuda.gpu;

import dev.penstock.cuda.device.Gpus;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.SymbolLookup;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import jcuda.CudaException;
import jcuda.driver.CUdevice;
import jcuda.driver.CUdevice_attribute;
import jcuda.driver.CUuuid;
import jcuda.driver.JCudaDriver;

/** Looks for GPUs. */
public final class GpuProbe {
    private GpuProbe() {}

    /**
     * Asks the driver. Costs a failed library lookup where there is none; never throws for want of
     * a GPU.
     */
    public static Gpus run() {
        // JCuda's first class loads its library, which links libcuda: look for that one first
        try {
            SymbolLookup.libraryLookup("libcuda.so.1", Arena.global());
        } catch (IllegalArgumentException e) {
            return new Gpus.None("there is no NVIDIA driver (libcuda.so.1 does not load)");
        }
        try {
            JcudaLibrary.load();
            return ask();
        } catch (IOException e) {
            return new Gpus.None("JCuda could not be unpacked: " + e.getMessage());
        } catch (CudaException e) {
            return new Gpus.None("the NVIDIA driver offers no GPU: " + e.getMessage());
        } catch (LinkageError e) {
            return new Gpus.None(
                    "JCuda could not be loaded: %s; if nothing may be run from that folder, name another with -Djava.io.tmpdir="
                            .formatted(e.getMessage()));
        }
    }

    private static Gpus ask() {
        JCudaDriver.setExceptionsEnabled(true);
        JCudaDriver.cuInit(0);
        int[] count = new int[1];
        JCudaDriver.cuDeviceGetCount(count);
        List<Gpus.Gpu> gpus = new ArrayList<>();
        for (int i = 0; i < count[0]; i++) {
            gpus.add(describe(i));
        }
        return gpus.isEmpty()
                ? new Gpus.None("the NVIDIA driver offers no GPU")
                : new Gpus.Found(gpus);
    }

    private static Gpus.Gpu describe(int index) {
        CUdevice device = new CUdevice();
        JCudaDriver.cuDeviceGet(device, index);
        byte[] name = new byte[256];
        JCudaDriver.cuDeviceGetName(name, name.length, device);
        long[] memory = new long[1];
        JCudaDriver.cuDeviceTotalMem(memory, device);
        int major =
                attribute(device, CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
        int minor =
                attribute(device, CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
        CUuuid uuid = new CUuuid();
        JCudaDriver.cuDeviceGetUuid(uuid, device);
        return new Gpus.Gpu(
                index, untilNul(name), memory[0], major + "." + minor, text(uuid.bytes));
    }

    /** As nvidia-smi writes it. */
    private static String text(byte[] uuid) {
        ByteBuffer bytes = ByteBuffer.wrap(uuid);
        return "GPU-" + new UUID(bytes.getLong(), bytes.getLong());
    }

    private static int attribute(CUdevice device, int attribute) {
        int[] value = new int[1];
        JCudaDriver.cuDeviceGetAttribute(value, attribute, device);
        return value[0];
    }

    private static String untilNul(byte[] text) {
        int length = 0;
        while (length < text.length && text[length] != 0) {
            length++;
        }
        return new String(text, 0, length, StandardCharsets.UTF_8);
    }
}
