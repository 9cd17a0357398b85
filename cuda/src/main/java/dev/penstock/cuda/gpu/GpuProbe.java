package dev.penstock.cuda.gpu;

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

/** What came of looking for GPUs. */
public sealed interface GpuProbe {
    /** GPUs that the driver offers, at least one. */
    record Found(List<Gpu> gpus) implements GpuProbe {
        public Found {
            gpus = List.copyOf(gpus);
        }
    }

    /** None, and why: one sentence. */
    record None(String reason) implements GpuProbe {}

    /**
     * A GPU.
     *
     * @param index as the driver counts
     * @param name such as {@code NVIDIA H200}
     * @param computeCapability such as {@code 9.0}
     * @param uuid which no other GPU has, whatever the driver counts
     */
    record Gpu(int index, String name, long memoryBytes, String computeCapability, String uuid) {
        /** The part of the compute capability before the point. */
        int majorCapability() {
            return Integer.parseInt(computeCapability.substring(0, computeCapability.indexOf('.')));
        }
    }

    /**
     * Asks the driver. Costs a failed library lookup where there is none; never throws for want of
     * a GPU.
     */
    static GpuProbe run() {
        // JCuda's first class loads its library, which links libcuda: look for that one first
        try {
            SymbolLookup.libraryLookup("libcuda.so.1", Arena.global());
        } catch (IllegalArgumentException e) {
            return new None("there is no NVIDIA driver (libcuda.so.1 does not load)");
        }
        try {
            JcudaLibrary.load();
            return ask();
        } catch (IOException e) {
            return new None("JCuda could not be unpacked: " + e.getMessage());
        } catch (CudaException e) {
            return new None("the NVIDIA driver offers no GPU: " + e.getMessage());
        } catch (LinkageError e) {
            return new None(
                    "JCuda could not be loaded: %s; if nothing may be run from that folder, name another with -Djava.io.tmpdir="
                            .formatted(e.getMessage()));
        }
    }

    private static GpuProbe ask() {
        JCudaDriver.setExceptionsEnabled(true);
        JCudaDriver.cuInit(0);
        int[] count = new int[1];
        JCudaDriver.cuDeviceGetCount(count);
        List<Gpu> gpus = new ArrayList<>();
        for (int i = 0; i < count[0]; i++) {
            gpus.add(describe(i));
        }
        return gpus.isEmpty() ? new None("the NVIDIA driver offers no GPU") : new Found(gpus);
    }

    private static Gpu describe(int index) {
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
        return new Gpu(index, untilNul(name), memory[0], major + "." + minor, text(uuid.bytes));
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
