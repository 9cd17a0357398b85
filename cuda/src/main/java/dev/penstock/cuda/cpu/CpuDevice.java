package dev.penstock.cuda.cpu;

import dev.penstock.cuda.cpu.vector.CodecKernels;
import dev.penstock.cuda.cpu.vector.Int8Kernels;
import dev.penstock.cuda.cpu.vector.Lanes;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.kernels.CheckedKernels;
import dev.penstock.cuda.memory.Scratch;
import dev.penstock.cuda.onednn.OneDnn;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import jdk.incubator.vector.FloatVector;

/**
 * The fast CPU device. Its threads work on one op together; the caller's thread is one of them.
 * Bits do not depend on the number of threads.
 */
public final class CpuDevice implements Device {
    private final DeviceScope memory;
    private final DeviceScope scratchScope;
    private final List<AutoCloseable> parts = new ArrayList<>();
    private final int threads;
    private final int vectorBits;
    private final Kernels kernels;
    private final Kernels sums;
    private final String gemmName;
    private final String gemmFingerprint;

    /**
     * Opens the device.
     *
     * @param settings threads, products and vector width; the kind is not looked at
     * @throws DeviceException if the settings insist on oneDNN and it cannot be loaded
     */
    public CpuDevice(DeviceSettings settings) {
        OneDnn.Probe oneDnn = chooseGemm(settings.gemm());
        threads = threads(settings);
        vectorBits = settings.vectorBits() > 0 ? settings.vectorBits() : preferredVectorBits();
        memory = CpuScope.root("cpu", settings.memoryLimitBytes(), settings.traceAllocations());
        scratchScope = memory.child(KERNELS, Long.MAX_VALUE);
        WorkerPool pool = closing(new WorkerPool(threads, "penstock-cpu"));
        Lanes lanes = Lanes.of(vectorBits);
        JavaGemm java = new JavaGemm(lanes, threads);
        MatrixProduct floats;
        MatrixProduct bfloats = null;
        switch (oneDnn) {
            case OneDnn.Probe.Missing missing -> {
                floats = java;
                gemmName = "Java (" + missing.reason() + ")";
                gemmFingerprint = "java";
            }
            case OneDnn.Probe.Found(OneDnn library) -> {
                floats =
                        new RowPadding(
                                new OneDnnGemm(library, java), DType.F32, scratch("padding"));
                if (library.multipliesBFloat16()) {
                    bfloats =
                            new RowPadding(
                                    bfloatProduct(library), DType.BF16, scratch("bf16 padding"));
                }
                gemmName = "oneDNN " + library.version();
                gemmFingerprint = "onednn-%s-%x".formatted(library.version(), library.isa());
            }
        }
        BFloat16Kernels conversions = new BFloat16Kernels(lanes);
        Scratch left = closing(new Scratch(scratchScope, "left factor"));
        Scratch right = closing(new Scratch(scratchScope, "right factor"));
        CpuProducts products =
                new CpuProducts(
                        pool,
                        floats,
                        bfloats,
                        new FactorConverter(pool, conversions, new CodecKernels(lanes), left),
                        new FactorConverter(pool, conversions, new CodecKernels(lanes), right),
                        new ScaledProducts(
                                pool, floats, new Int8Kernels(lanes), scratch("widened weights")));
        Scratch[] scores = scratch("scores");
        var attention = new CpuAttention(new AttentionHeads(pool, floats, scores, false), lanes);
        var earlier =
                new CpuEarlierAttention(new AttentionHeads(pool, floats, scores, true), lanes);
        var retention = new CpuRetention(pool, floats, scores, lanes);
        kernels =
                new CheckedKernels(
                        new CpuKernels(lanes, pool, products, attention, earlier, retention));
        // what only adds and copies uses neither products nor attention, and no other thread
        sums =
                new CheckedKernels(
                        new CpuKernels(
                                lanes,
                                closing(new WorkerPool(1, "penstock-sums")),
                                products,
                                attention,
                                earlier,
                                retention));
    }

    /** That work on an op. */
    static int threads(DeviceSettings settings) {
        return settings.threads() > 0
                ? settings.threads()
                : Runtime.getRuntime().availableProcessors();
    }

    private OneDnnBFloatProduct bfloatProduct(OneDnn library) {
        return closing(new OneDnnBFloatProduct(library, scratch("bf16 product")));
    }

    private static OneDnn.Probe chooseGemm(DeviceSettings.Gemm gemm) {
        return switch (gemm) {
            case CUBLAS, KERNELS ->
                    throw new DeviceException(
                            "opening the CPU device: expected gemm = auto, onednn or java, got %s, which is for GPUs; try device.kind = cuda"
                                    .formatted(gemm.name().toLowerCase(Locale.ROOT)));
            case JAVA -> new OneDnn.Probe.Missing("as set");
            case AUTO -> OneDnn.probe();
            case ONEDNN ->
                    switch (OneDnn.probe()) {
                        case OneDnn.Probe.Found found -> found;
                        case OneDnn.Probe.Missing(String reason) ->
                                throw new DeviceException(
                                        "opening the CPU device: expected oneDNN, but "
                                                + reason
                                                + "; try gemm = auto or java");
                    };
        };
    }

    private static int preferredVectorBits() {
        return Math.clamp(FloatVector.SPECIES_PREFERRED.vectorBitSize(), 256, 512);
    }

    /** Scratch for each thread. */
    private Scratch[] scratch(String name) {
        Scratch[] scratch = new Scratch[threads];
        for (int i = 0; i < threads; i++) {
            scratch[i] = closing(new Scratch(scratchScope, name + " " + i));
        }
        return scratch;
    }

    private <T extends AutoCloseable> T closing(T part) {
        parts.add(part);
        return part;
    }

    @Override
    public String name() {
        return "cpu (%d %s, %d-bit vectors, %s)"
                .formatted(threads, threads == 1 ? "thread" : "threads", vectorBits, gemmName);
    }

    @Override
    public String fingerprint() {
        return "cpu-1/%s/%d".formatted(gemmFingerprint, vectorBits);
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
    public Optional<Kernels> sumsBesideOps() {
        return Optional.of(sums);
    }

    @Override
    public void close() {
        for (AutoCloseable part : parts.reversed()) {
            close(part);
        }
        parts.clear();
        scratchScope.close();
        memory.close();
    }

    private static void close(AutoCloseable part) {
        try {
            part.close();
        } catch (RuntimeException e) {
            throw e;
        } catch (Exception e) {
            throw new DeviceException("closing the CPU device", e);
        }
    }
}
