package dev.penstock.cuda.cublas;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.penstock.cuda.device.DType;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * cuBLAS on one stream of one GPU. Sums are F32, and no product of F32 is rounded on the way (no
 * TF32). Used by one thread at a time, which has the GPU's context.
 */
public final class CublasMultiplier implements AutoCloseable {
    /** Sums of narrower factors are F32 throughout; the default lets parts of them be narrow. */
    private static final int STRICT_MATH = 16;

    private static final int NORMAL = 0;
    private static final int TRANSPOSED = 1;
    private static final int REAL_32F = 0;
    private static final int REAL_16BF = 14;
    private static final int COMPUTE_32F = 68;
    private static final int DEFAULT_ALGORITHM = -1;

    private final Cublas library;
    private final CublasFunctions functions;
    private final Arena arena = Arena.ofShared();
    private final MemorySegment one = arena.allocateFrom(JAVA_FLOAT, 1);
    private final MemorySegment zero = arena.allocateFrom(JAVA_FLOAT, 0);
    private final long handle;
    private boolean closed;

    CublasMultiplier(Cublas library, long stream, long workspace, long workspaceBytes) {
        this.library = library;
        this.functions = library.functions();
        this.handle = create(functions);
        try {
            // in this order: a new stream forgets the workspace
            Cublas.check(
                    "cublasSetStream", (int) functions.setStream().invokeExact(handle, stream));
            Cublas.check(
                    "cublasSetWorkspace",
                    (int) functions.setWorkspace().invokeExact(handle, workspace, workspaceBytes));
            Cublas.check(
                    "cublasSetMathMode",
                    (int) functions.setMathMode().invokeExact(handle, STRICT_MATH));
        } catch (Throwable e) {
            close();
            throw Cublas.rethrown(e);
        }
    }

    private static long create(CublasFunctions functions) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment handle = arena.allocate(ADDRESS);
            Cublas.check("cublasCreate", (int) functions.create().invokeExact(handle));
            return handle.get(JAVA_LONG, 0);
        } catch (Throwable e) {
            throw Cublas.rethrown(e);
        }
    }

    /** Whose functions it calls. */
    public Cublas library() {
        return library;
    }

    /**
     * {@code c = op(a) op(b)}, or {@code c += ...}, row-major: c {@code [m, n]} in F32. Returns at
     * once; strides in elements.
     *
     * @param factors of both a and b
     */
    public void multiply(
            DType factors,
            boolean transposeA,
            boolean transposeB,
            int m,
            int n,
            int k,
            long a,
            int strideA,
            long b,
            int strideB,
            boolean accumulate,
            long c,
            int strideC) {
        MemorySegment beta = accumulate ? one : zero;
        int type = factors == DType.BF16 ? REAL_16BF : REAL_32F;
        try {
            // what lies row by row is, column by column, the transposed matrix: c^T = op(b)^T
            // op(a)^T
            int status =
                    (int)
                            functions
                                    .gemmEx()
                                    .invokeExact(
                                            handle,
                                            transposeB ? TRANSPOSED : NORMAL,
                                            transposeA ? TRANSPOSED : NORMAL,
                                            n,
                                            m,
                                            k,
                                            one,
                                            b,
                                            type,
                                            strideB,
                                            a,
                                            type,
                                            strideA,
                                            beta,
                                            c,
                                            REAL_32F,
                                            strideC,
                                            COMPUTE_32F,
                                            DEFAULT_ALGORITHM);
            if (status != 0) {
                Cublas.check("cublasGemmEx of %d x %d x %d".formatted(m, n, k), status);
            }
        } catch (Throwable e) {
            throw Cublas.rethrown(e);
        }
    }

    /** Idempotent. Never throws: that of a lost GPU closes too. */
    @Override
    public void close() {
        if (closed) {
            return;
        }
        closed = true;
        try {
            int status = (int) functions.destroy().invokeExact(handle);
            if (status != 0) {
                System.getLogger(CublasMultiplier.class.getName())
                        .log(System.Logger.Level.WARNING, "cublasDestroy: status " + status);
            }
        } catch (Throwable e) {
            throw Cublas.rethrown(e);
        } finally {
            arena.close();
        }
    }
}
