package dev.penstock.cuda.onednn;

import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.libraries.NativeFiles;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;

/**
 * oneDNN, loaded. Every call runs on the calling thread alone: the library's own threads collapse
 * on shared cores, and callers split their work themselves. Safe from any thread.
 */
public final class OneDnn {
    private static final String RESOURCES = "/org/bytedeco/dnnl/linux-x86_64/";
    private static final int BFLOAT16_ISA = 0x80;
    private static final int AVX512_ISA = 0x20;

    /** AVX-512 with all its extensions, and AMX for BF16: what the bits were tried with. */
    private static final int MOST_ISA = 0xfef;

    private final ThreadLocal<Boolean> alone = new ThreadLocal<>();
    private final String version;
    private final int isa;

    private OneDnn() {
        this.version = readVersion();
        limitIsa();
        this.isa = readIsa();
    }

    /** What came of looking for the library. */
    public sealed interface Probe {
        /** It is loaded. */
        record Found(OneDnn library) implements Probe {}

        /** It is not there, or not used on this processor, and why. */
        record Missing(String reason) implements Probe {}
    }

    /**
     * Unpacks and loads the library; loading it again costs little. With AVX2 it is not used: there
     * its kernels for the last rows of a matrix sum in an order of their own, so that bits would
     * depend on threads and slices.
     */
    public static Probe probe() {
        String platform = System.getProperty("os.name") + " " + System.getProperty("os.arch");
        if (!platform.equals("Linux amd64")) {
            return new Probe.Missing("oneDNN is packed for Linux amd64 only, this is " + platform);
        }
        try {
            NativeFiles files =
                    new NativeFiles(Path.of(System.getProperty("java.io.tmpdir", "/tmp")));
            // libdnnl links libgomp by name: it must be there first
            System.load(files.unpack(RESOURCES + "libgomp.so.1").toString());
            System.load(files.unpack(RESOURCES + "libdnnl.so.3").toString());
            OneDnn library = new OneDnn();
            return (library.isa & AVX512_ISA) != 0
                    ? new Probe.Found(library)
                    : new Probe.Missing(
                            "this processor has no AVX-512, without which oneDNN's bits depend on threads and slices");
        } catch (IOException | UnsupportedOperationException e) {
            return new Probe.Missing("oneDNN could not be unpacked: " + e.getMessage());
        } catch (LinkageError e) {
            return new Probe.Missing("oneDNN could not be loaded: " + e.getMessage());
        }
    }

    /** Such as {@code 3.11.0}. */
    public String version() {
        return version;
    }

    /** The instruction set that the library chose, as a number; part of what bits depend on. */
    public int isa() {
        return isa;
    }

    /** Whether the processor multiplies BF16. */
    public boolean multipliesBFloat16() {
        return (isa & BFLOAT16_ISA) != 0;
    }

    /**
     * {@code c = op(a) op(b)}, or {@code c += ...}, on F32 matrices, row-major; strides in
     * elements.
     */
    public void sgemm(
            boolean transposeA,
            boolean transposeB,
            long m,
            long n,
            long k,
            long a,
            long strideA,
            long b,
            long strideB,
            boolean accumulate,
            long c,
            long strideC) {
        ensureAlone();
        try {
            int status =
                    (int)
                            DnnlFunctions.SGEMM.invokeExact(
                                    transpose(transposeA),
                                    transpose(transposeB),
                                    m,
                                    n,
                                    k,
                                    1f,
                                    a,
                                    strideA,
                                    b,
                                    strideB,
                                    accumulate ? 1f : 0f,
                                    c,
                                    strideC);
            if (status != 0) {
                throw failed("dnnl_sgemm of %d x %d x %d".formatted(m, n, k), status);
            }
        } catch (Throwable e) {
            throw rethrown(e);
        }
    }

    private static byte transpose(boolean transposed) {
        return (byte) (transposed ? 'T' : 'N');
    }

    /** OpenMP counts threads per calling thread: one call per thread suffices. */
    void ensureAlone() {
        if (alone.get() == null) {
            try {
                DnnlFunctions.OMP_SET_NUM_THREADS.invokeExact(1);
            } catch (Throwable e) {
                throw rethrown(e);
            }
            alone.set(true);
        }
    }

    private static String readVersion() {
        try {
            MemorySegment v =
                    ((MemorySegment) DnnlFunctions.VERSION.invokeExact()).reinterpret(3 * 4);
            return "%d.%d.%d"
                    .formatted(
                            v.getAtIndex(ValueLayout.JAVA_INT, 0),
                            v.getAtIndex(ValueLayout.JAVA_INT, 1),
                            v.getAtIndex(ValueLayout.JAVA_INT, 2));
        } catch (Throwable e) {
            throw rethrown(e);
        }
    }

    /** Before anything is multiplied; the library takes it once and refuses it afterwards. */
    private static void limitIsa() {
        try {
            int _ = (int) DnnlFunctions.SET_MAX_CPU_ISA.invokeExact(MOST_ISA);
        } catch (Throwable e) {
            throw rethrown(e);
        }
    }

    private static int readIsa() {
        try {
            return (int) DnnlFunctions.EFFECTIVE_CPU_ISA.invokeExact();
        } catch (Throwable e) {
            throw rethrown(e);
        }
    }

    static DeviceException failed(String call, int status) {
        return new DeviceException(
                "%s: expected status 0, got %d; try gemm = java".formatted(call, status));
    }

    static RuntimeException rethrown(Throwable e) {
        return switch (e) {
            case RuntimeException runtime -> runtime;
            case Error error -> throw error;
            default -> new DeviceException("a call into oneDNN failed", e);
        };
    }
}
