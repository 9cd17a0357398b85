package dev.penstock.cuda.gpu;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.DeviceSettings.Kind;
import dev.penstock.cuda.device.Tensor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import jcuda.driver.CUfunction;
import jcuda.driver.CUmodule;
import jcuda.driver.JCudaDriver;

/** The kernels of {@code broken.cu}, which are there to be found out. */
final class PlantedKernels {
    private static final int THREADS = 64;

    private PlantedKernels() {}

    /** Returns the 64 numbers that the kernel leaves in place of zeros. */
    static float[] run(String kernel, int gpu, int blocks) {
        try (Device device =
                GpuDevice.open(DeviceSettings.DEFAULTS.withKind(Kind.CUDA).withGpu(gpu))) {
            Tensor result = device.memory().tensor("result", DType.F32, 1, THREADS);
            result.write(MemorySegment.ofArray(new float[THREADS]));
            CUfunction function = new CUfunction();
            JCudaDriver.cuModuleGetFunction(function, module(entry(kernel, ".u64")), kernel);
            GpuContext context = new GpuContext(gpu);
            try {
                new Launch(context)
                        .begin()
                        .vector(result)
                        .run(new GpuModule.Function(kernel, function), blocks, THREADS);
                context.finish();
            } finally {
                context.close();
            }
            return result.contents().toArray(ValueLayout.JAVA_FLOAT);
        }
    }

    static CUmodule module(String ptx) {
        CUmodule module = new CUmodule();
        JCudaDriver.cuModuleLoadData(module, (ptx + "\0").getBytes(StandardCharsets.US_ASCII));
        return module;
    }

    /** PTX with one parameter of this type. */
    static String entry(String kernel, String type) {
        return ".version 7.0\n.visible .entry %s(\n\t.param %s %s_param_0\n)\n{\n\tret;\n}\n"
                .formatted(kernel, type, kernel);
    }
}
