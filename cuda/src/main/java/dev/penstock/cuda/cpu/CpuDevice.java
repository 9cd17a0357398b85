package dev.penstock.cuda.cpu;

import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.kernels.CheckedKernels;
import jdk.incubator.vector.FloatVector;

/**
 * The fast CPU device. Its threads work on one op together; the caller's thread is one of them.
 * Bits do not depend on the number of threads.
 */
public final class CpuDevice implements Device {
    private final CpuScope memory;
    private final DeviceScope scratchScope;
    private final Scratch[] scratchOfThreads;
    private final Scratch leftScratch;
    private final Scratch rightScratch;
    private final WorkerPool pool;
    private final Kernels kernels;
    private final int vectorBits;

    /**
     * Opens the device.
     *
     * @param settings threads, products and vector width; the kind is not looked at
     */
    public CpuDevice(DeviceSettings settings) {
        int threads =
                settings.threads() > 0
                        ? settings.threads()
                        : Runtime.getRuntime().availableProcessors();
        vectorBits = settings.vectorBits() > 0 ? settings.vectorBits() : preferredVectorBits();
        memory = CpuScope.root("cpu", settings.memoryLimitBytes(), settings.traceAllocations());
        scratchScope = memory.child("scratch", Long.MAX_VALUE);
        scratchOfThreads = new Scratch[threads];
        for (int i = 0; i < threads; i++) {
            scratchOfThreads[i] = new Scratch(scratchScope, "thread " + i);
        }
        leftScratch = new Scratch(scratchScope, "left factor");
        rightScratch = new Scratch(scratchScope, "right factor");
        pool = new WorkerPool(threads, "penstock-cpu");
        Lanes lanes = Lanes.of(vectorBits);
        MatrixProduct product = new JavaGemm(lanes, threads);
        BFloat16Kernels bfloats = new BFloat16Kernels(lanes);
        CpuProducts products =
                new CpuProducts(
                        pool,
                        product,
                        null,
                        new FactorConverter(pool, bfloats, leftScratch),
                        new FactorConverter(pool, bfloats, rightScratch));
        CpuAttention attention = new CpuAttention(pool, product, lanes, scratchOfThreads);
        kernels = new CheckedKernels(new CpuKernels(lanes, pool, products, attention));
    }

    private static int preferredVectorBits() {
        return Math.clamp(FloatVector.SPECIES_PREFERRED.vectorBitSize(), 256, 512);
    }

    @Override
    public String name() {
        return "cpu (%d threads, %d-bit vectors, Java)".formatted(pool.threads(), vectorBits);
    }

    @Override
    public String fingerprint() {
        return "cpu-1/java/" + vectorBits;
    }

    @Override
    public DeviceScope memory() {
        return memory;
    }

    @Override
    public Kernels kernels() {
        return kernels;
    }

    @Override
    public void close() {
        pool.close();
        for (Scratch s : scratchOfThreads) {
            s.close();
        }
        leftScratch.close();
        rightScratch.close();
        scratchScope.close();
        memory.close();
    }
}
