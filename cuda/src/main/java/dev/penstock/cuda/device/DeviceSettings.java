package dev.penstock.cuda.device;

/**
 * Which device to open and how.
 *
 * @param threads threads that work on an op, the caller included; 0 takes one per processor
 * @param gemm who multiplies matrices
 * @param vectorBits width of the CPU's vectors: 256, 512, or 0 for what the processor prefers
 * @param gpu which NVIDIA GPU, as the driver counts from 0
 * @param memoryLimitBytes most bytes of device memory, {@code Long.MAX_VALUE} for no limit
 * @param traceAllocations whether leak reports show where each buffer was allocated (slower)
 * @param graphs whether a GPU is given work that comes again as a CUDA graph, by one call
 */
public record DeviceSettings(
        Kind kind,
        int threads,
        Gemm gemm,
        int vectorBits,
        int gpu,
        long memoryLimitBytes,
        boolean traceAllocations,
        boolean graphs) {

    /** Kinds of devices. */
    public enum Kind {
        /** The best that this release can use. */
        AUTO,
        /** The fast CPU device. */
        CPU,
        /** An NVIDIA GPU. */
        CUDA,
        /** Plain scalar kernels: slow, for comparison. */
        REFERENCE
    }

    /** Who multiplies matrices. */
    public enum Gemm {
        /** oneDNN with AVX-512 or, on a GPU, cuBLAS where it loads, otherwise our own. */
        AUTO,
        /** oneDNN on a CPU, or an error. */
        ONEDNN,
        /** Our own vector code on a CPU: always there, and the reference for bits. */
        JAVA,
        /** cuBLAS on a GPU, or an error. */
        CUBLAS,
        /** Our own kernels on a GPU: always there, and token slices change no bit. */
        KERNELS
    }

    /** The settings of a user who set nothing. */
    public static final DeviceSettings DEFAULTS =
            new DeviceSettings(Kind.AUTO, 0, Gemm.AUTO, 0, 0, Long.MAX_VALUE, false, false);

    public DeviceSettings {
        if (threads < 0) {
            throw new DeviceException(
                    "device settings: expected threads of 1 or more (0 = auto), got " + threads);
        }
        if (vectorBits != 0 && vectorBits != 256 && vectorBits != 512) {
            throw new DeviceException(
                    "device settings: expected vector bits 256 or 512 (0 = auto), got "
                            + vectorBits);
        }
        if (gpu < 0) {
            throw new DeviceException("device settings: expected a GPU of 0 or more, got " + gpu);
        }
        if (memoryLimitBytes < 1) {
            throw new DeviceException(
                    "device settings: expected a memory limit above 0 bytes, got "
                            + memoryLimitBytes);
        }
    }

    /** These settings with another kind. */
    public DeviceSettings withKind(Kind kind) {
        return new DeviceSettings(
                kind, threads, gemm, vectorBits, gpu, memoryLimitBytes, traceAllocations, graphs);
    }

    /** These settings with another number of threads. */
    public DeviceSettings withThreads(int threads) {
        return new DeviceSettings(
                kind, threads, gemm, vectorBits, gpu, memoryLimitBytes, traceAllocations, graphs);
    }

    /** These settings with another choice of matrix products. */
    public DeviceSettings withGemm(Gemm gemm) {
        return new DeviceSettings(
                kind, threads, gemm, vectorBits, gpu, memoryLimitBytes, traceAllocations, graphs);
    }

    /** These settings with another vector width. */
    public DeviceSettings withVectorBits(int vectorBits) {
        return new DeviceSettings(
                kind, threads, gemm, vectorBits, gpu, memoryLimitBytes, traceAllocations, graphs);
    }

    /** These settings with another limit on memory. */
    public DeviceSettings withMemoryLimitBytes(long memoryLimitBytes) {
        return new DeviceSettings(
                kind, threads, gemm, vectorBits, gpu, memoryLimitBytes, traceAllocations, graphs);
    }

    /** These settings with another GPU. */
    public DeviceSettings withGpu(int gpu) {
        return new DeviceSettings(
                kind, threads, gemm, vectorBits, gpu, memoryLimitBytes, traceAllocations, graphs);
    }

    /** These settings with CUDA graphs, or without. */
    public DeviceSettings withGraphs(boolean graphs) {
        return new DeviceSettings(
                kind, threads, gemm, vectorBits, gpu, memoryLimitBytes, traceAllocations, graphs);
    }
}
