package dev.penstock.cuda.cublas;

import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * cublasLt on one stream of one GPU: products that do what follows them before they write their
 * sums. The algorithm of each {@link JoinedProduct} is the first that the library's heuristic
 * proposes, and is kept: the same run has the same bits. Used by one thread at a time, which has
 * the GPU's context.
 */
public final class CublasLtMultiplier implements AutoCloseable {
    /** What matrices begin at, and their rows. */
    public static final int ALIGNMENT = 16;

    private static final System.Logger LOG = System.getLogger(CublasLtMultiplier.class.getName());

    private static final int TRANSPOSED = 1;
    private static final int REAL_32F = 0;
    private static final int REAL_16BF = 14;
    private static final int COMPUTE_32F = 68;

    // of cublasLtMatmulDescAttributes_t
    private static final int TRANSPOSE_A = 3;
    private static final int EPILOGUE = 7;
    private static final int BIAS_POINTER = 8;
    private static final int AUX_POINTER = 11;
    private static final int AUX_LEADING = 12;

    // of cublasLtMatmulPreferenceAttributes_t
    private static final int MOST_WORKSPACE = 1;
    private static final int FIRST_ALIGNMENT = 5; // of a; b, c and d follow

    /** Of cublasLtMatmulHeuristicResult_t: algorithm, workspace, status, waves, and reserved. */
    private static final int ALGORITHM_BYTES = 64;

    private static final int STATUS_AT = ALGORITHM_BYTES + 8;
    private static final int WAVES_AT = STATUS_AT + 4;
    private static final int CHOICE_BYTES = 96;

    private final CublasLtFunctions functions;
    private final long stream;
    private final long workspace;
    private final long workspaceBytes;
    private final Arena arena = Arena.ofShared();
    private final MemorySegment one = arena.allocateFrom(JAVA_FLOAT, 1);
    private final MemorySegment zero = arena.allocateFrom(JAVA_FLOAT, 0);
    private final MemorySegment value = arena.allocate(JAVA_LONG);
    private final long handle;
    private final Map<JoinedProduct, Optional<Plan>> plans = new HashMap<>();
    private boolean closed;

    CublasLtMultiplier(
            CublasLtFunctions functions, long stream, long workspace, long workspaceBytes) {
        this.functions = functions;
        this.stream = stream;
        this.workspace = workspace;
        this.workspaceBytes = workspaceBytes;
        try {
            Cublas.check("cublasLtCreate", (int) functions.create().invokeExact(value));
        } catch (Throwable e) {
            arena.close();
            throw Cublas.rethrown(e);
        }
        handle = value.get(JAVA_LONG, 0);
    }

    /** A product with its algorithm. */
    public final class Plan {
        private final JoinedProduct of;
        private final List<Runnable> closing = new ArrayList<>();
        private final MemorySegment algorithm = arena.allocate(ALGORITHM_BYTES, Long.BYTES);
        private final long product;
        private final long left;
        private final long right;
        private final long added;
        private final long result;
        private boolean found;

        // what lies row by row is, column by column, the transposed matrix: d^T = op(b)^T a^T
        private Plan(JoinedProduct of) throws Throwable {
            this.of = of;
            check(
                    "MatmulDescCreate",
                    (int) functions.createProduct().invokeExact(value, COMPUTE_32F, REAL_32F));
            product = made(functions.destroyProduct());
            left =
                    of.transposeB()
                            ? layout(REAL_16BF, of.k(), of.n(), of.strideB())
                            : layout(REAL_16BF, of.n(), of.k(), of.strideB());
            right = layout(REAL_16BF, of.k(), of.m(), of.strideA());
            int type = of.result() == DType.BF16 ? REAL_16BF : REAL_32F;
            result = layout(type, of.n(), of.m(), of.strideD());
            added = of.strideC() == 0 ? result : layout(type, of.n(), of.m(), of.strideC());
            if (of.transposeB()) {
                set(TRANSPOSE_A, TRANSPOSED);
            }
            set(EPILOGUE, of.epilogue().code());
            // the heuristic looks at what addresses are multiples of: no more than those to come
            long somewhere = workspace + ALIGNMENT;
            if (of.epilogue().hasBias()) {
                setLong(BIAS_POINTER, somewhere);
            }
            if (of.strideAux() > 0) {
                setLong(AUX_LEADING, of.strideAux());
                setLong(AUX_POINTER, somewhere);
            }
            choose();
        }

        private long made(MethodHandle destroy) {
            long object = value.get(JAVA_LONG, 0);
            closing.add(
                    () -> {
                        try {
                            var _ = (int) destroy.invokeExact(object);
                        } catch (Throwable e) {
                            throw Cublas.rethrown(e);
                        }
                    });
            return object;
        }

        private long layout(int type, long rows, long columns, long leading) throws Throwable {
            check(
                    "MatrixLayoutCreate",
                    (int)
                            functions
                                    .createLayout()
                                    .invokeExact(value, type, rows, columns, leading));
            return made(functions.destroyLayout());
        }

        private void set(int attribute, int to) throws Throwable {
            value.set(JAVA_INT, 0, to);
            check(
                    "MatmulDescSetAttribute",
                    (int)
                            functions
                                    .setProduct()
                                    .invokeExact(product, attribute, value, (long) Integer.BYTES));
        }

        private void setLong(int attribute, long to) throws Throwable {
            value.set(JAVA_LONG, 0, to);
            check(
                    "MatmulDescSetAttribute",
                    (int)
                            functions
                                    .setProduct()
                                    .invokeExact(product, attribute, value, (long) Long.BYTES));
        }

        private void choose() throws Throwable {
            check("MatmulPreferenceCreate", (int) functions.createPreference().invokeExact(value));
            long preference = made(functions.destroyPreference());
            value.set(JAVA_LONG, 0, workspaceBytes);
            prefer(preference, MOST_WORKSPACE, Long.BYTES);
            for (int matrix = 0; matrix < 4; matrix++) {
                value.set(JAVA_INT, 0, ALIGNMENT);
                prefer(preference, FIRST_ALIGNMENT + matrix, Integer.BYTES);
            }
            try (Arena results = Arena.ofConfined()) {
                MemorySegment choice = results.allocate(CHOICE_BYTES, Long.BYTES);
                MemorySegment count = results.allocate(JAVA_INT);
                int status =
                        (int)
                                functions
                                        .choose()
                                        .invokeExact(
                                                handle,
                                                product,
                                                left,
                                                right,
                                                added,
                                                result,
                                                preference,
                                                1,
                                                choice,
                                                count);
                found =
                        status == 0
                                && count.get(JAVA_INT, 0) > 0
                                && choice.get(JAVA_INT, STATUS_AT) == 0;
                MemorySegment.copy(choice, 0, algorithm, 0, ALGORITHM_BYTES);
                LOG.log(
                        System.Logger.Level.DEBUG,
                        () ->
                                found
                                        ? "cublasLt: %s: algorithm %x, %d bytes of workspace, %.2f waves"
                                                .formatted(
                                                        of,
                                                        choice.get(JAVA_LONG, 0),
                                                        choice.get(JAVA_LONG, ALGORITHM_BYTES),
                                                        choice.get(JAVA_FLOAT, WAVES_AT))
                                        : "cublasLt: %s: no algorithm".formatted(of));
            }
        }

        private void prefer(long preference, int attribute, int bytes) throws Throwable {
            check(
                    "MatmulPreferenceSetAttribute",
                    (int)
                            functions
                                    .setPreference()
                                    .invokeExact(preference, attribute, value, (long) bytes));
        }

        private void check(String call, int status) {
            if (status != 0) {
                Cublas.check("cublasLt%s (%s)".formatted(call, of), status);
            }
        }

        /** Returns what this multiplies. */
        public JoinedProduct product() {
            return of;
        }

        /**
         * Multiplies; returns at once. All are addresses on the device.
         *
         * @param c what is added; not read where its stride is 0
         * @param bias {@code [n]}; 0 where there is none
         * @param aux 0 where there is none
         */
        public void multiply(long a, long b, long c, long d, long bias, long aux) {
            MemorySegment beta = of.strideC() > 0 ? one : zero;
            long from = of.strideC() > 0 ? c : d;
            try {
                if (bias != 0) {
                    setLong(BIAS_POINTER, bias);
                }
                if (aux != 0) {
                    setLong(AUX_POINTER, aux);
                }
                check(
                        "Matmul",
                        (int)
                                functions
                                        .multiply()
                                        .invokeExact(
                                                handle,
                                                product,
                                                one,
                                                b,
                                                left,
                                                a,
                                                right,
                                                beta,
                                                from,
                                                added,
                                                d,
                                                result,
                                                algorithm,
                                                workspace,
                                                workspaceBytes,
                                                stream));
            } catch (Throwable e) {
                throw Cublas.rethrown(e);
            }
        }

        private void close() {
            closing.reversed().forEach(Runnable::run);
        }
    }

    /** Returns how to multiply so; empty if the library cannot, whatever it says of that. */
    public Optional<Plan> plan(JoinedProduct product) {
        return plans.computeIfAbsent(product, this::planned);
    }

    private Optional<Plan> planned(JoinedProduct product) {
        try {
            Plan plan = new Plan(product);
            if (plan.found) {
                return Optional.of(plan);
            }
            plan.close();
            return Optional.empty();
        } catch (DeviceException e) {
            LOG.log(System.Logger.Level.WARNING, e.getMessage());
            return Optional.empty();
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
        plans.values().forEach(plan -> plan.ifPresent(Plan::close));
        try {
            int status = (int) functions.destroy().invokeExact(handle);
            if (status != 0) {
                LOG.log(System.Logger.Level.WARNING, "cublasLtDestroy: status " + status);
            }
        } catch (Throwable e) {
            throw Cublas.rethrown(e);
        } finally {
            arena.close();
        }
    }
}
