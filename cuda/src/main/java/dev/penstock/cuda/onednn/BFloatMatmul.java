package dev.penstock.cuda.onednn;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * A product of BF16 matrices of one shape into F32: a compiled kernel, kept for as long as such
 * products are wanted. Used by one thread at a time, any thread.
 */
public final class BFloatMatmul implements AutoCloseable {
    private static final int CPU_ENGINE = 1;
    private static final int IN_ORDER_STREAM = 1;
    private static final int USER_SCRATCHPAD = 1;
    private static final int QUERY_SCRATCHPAD = 136;
    private static final int BF16 = 2;
    private static final int F32 = 3;
    private static final int SOURCE = 1;
    private static final int DESTINATION = 17;
    private static final int WEIGHTS = 33;
    private static final int SCRATCHPAD = 80;

    /**
     * A shape, row-major; strides in elements from one stored row to the next.
     *
     * @param accumulate whether the product is added to what the result holds
     */
    public record Shape(
            int m,
            int n,
            int k,
            boolean transposeA,
            int strideA,
            boolean transposeB,
            int strideB,
            int strideC,
            boolean accumulate) {}

    private final OneDnn library;
    private final Shape shape;
    private final DnnlObjects objects = new DnnlObjects();
    private final Arena arena = Arena.ofShared();
    private final long stream;
    private final long primitive;
    private final long source;
    private final long weights;
    private final long destination;
    private final long scratchpad;
    private final long scratchBytes;
    private final MemorySegment arguments;

    /** Compiles the kernel: milliseconds. */
    public BFloatMatmul(OneDnn library, Shape shape) {
        this.library = library;
        this.shape = shape;
        library.ensureAlone();
        long engine =
                objects.create(
                        "dnnl_engine_create",
                        to -> (int) DnnlFunctions.ENGINE_CREATE.invokeExact(to, CPU_ENGINE, 0L),
                        DnnlFunctions.ENGINE_DESTROY);
        stream =
                objects.create(
                        "dnnl_stream_create",
                        to ->
                                (int)
                                        DnnlFunctions.STREAM_CREATE.invokeExact(
                                                to, engine, IN_ORDER_STREAM),
                        DnnlFunctions.STREAM_DESTROY);
        long a = descriptor(shape.m, shape.k, BF16, shape.strideA, shape.transposeA);
        long b = descriptor(shape.k, shape.n, BF16, shape.strideB, shape.transposeB);
        long c = descriptor(shape.m, shape.n, F32, shape.strideC, false);
        long attributes = attributes(shape.accumulate);
        long description =
                objects.create(
                        "dnnl_matmul_primitive_desc_create for " + shape,
                        to ->
                                (int)
                                        DnnlFunctions.MATMUL_DESC_CREATE.invokeExact(
                                                to, engine, a, b, 0L, c, attributes),
                        DnnlFunctions.PRIMITIVE_DESC_DESTROY);
        long scratch = scratchDescriptor(description);
        scratchBytes = size(scratch);
        primitive =
                objects.create(
                        "dnnl_primitive_create",
                        to -> (int) DnnlFunctions.PRIMITIVE_CREATE.invokeExact(to, description),
                        DnnlFunctions.PRIMITIVE_DESTROY);
        source = memory(engine, a);
        weights = memory(engine, b);
        destination = memory(engine, c);
        scratchpad = memory(engine, scratch);
        arguments = arguments();
    }

    /** What it multiplies. */
    public Shape shape() {
        return shape;
    }

    /** Bytes of scratch memory that {@link #multiply} wants. */
    public long scratchBytes() {
        return scratchBytes;
    }

    /**
     * {@code c = a b} or {@code c += a b}; addresses of the matrices and of 64-byte aligned
     * scratch.
     */
    public void multiply(long a, long b, long c, long scratch) {
        library.ensureAlone();
        try {
            setHandle(source, a);
            setHandle(weights, b);
            setHandle(destination, c);
            setHandle(scratchpad, scratch);
            int status =
                    (int)
                            DnnlFunctions.PRIMITIVE_EXECUTE.invokeExact(
                                    primitive, stream, 4, arguments.address());
            if (status == 0) {
                status = (int) DnnlFunctions.STREAM_WAIT.invokeExact(stream);
            }
            if (status != 0) {
                throw OneDnn.failed("a BF16 product by oneDNN", status);
            }
        } catch (Throwable e) {
            throw OneDnn.rethrown(e);
        }
    }

    private static void setHandle(long memory, long address) throws Throwable {
        int status = (int) DnnlFunctions.MEMORY_SET_DATA_HANDLE.invokeExact(memory, address);
        if (status != 0) {
            throw OneDnn.failed("dnnl_memory_set_data_handle", status);
        }
    }

    private long descriptor(int rows, int columns, int type, int stride, boolean transposed) {
        MemorySegment dims = arena.allocateFrom(ValueLayout.JAVA_LONG, rows, columns);
        MemorySegment strides =
                transposed
                        ? arena.allocateFrom(ValueLayout.JAVA_LONG, 1, stride)
                        : arena.allocateFrom(ValueLayout.JAVA_LONG, stride, 1);
        return objects.create(
                "dnnl_memory_desc_create_with_strides",
                to ->
                        (int)
                                DnnlFunctions.MEMORY_DESC_CREATE.invokeExact(
                                        to, 2, dims, type, strides),
                DnnlFunctions.MEMORY_DESC_DESTROY);
    }

    private long attributes(boolean accumulate) {
        long attributes =
                objects.create(
                        "dnnl_primitive_attr_create",
                        to -> (int) DnnlFunctions.ATTR_CREATE.invokeExact(to),
                        DnnlFunctions.ATTR_DESTROY);
        DnnlObjects.call(
                "dnnl_primitive_attr_set_scratchpad_mode",
                () ->
                        (int)
                                DnnlFunctions.ATTR_SET_SCRATCHPAD_MODE.invokeExact(
                                        attributes, USER_SCRATCHPAD));
        if (accumulate) {
            long operations =
                    objects.create(
                            "dnnl_post_ops_create",
                            to -> (int) DnnlFunctions.POST_OPS_CREATE.invokeExact(to),
                            DnnlFunctions.POST_OPS_DESTROY);
            DnnlObjects.call(
                    "dnnl_post_ops_append_sum",
                    () ->
                            (int)
                                    DnnlFunctions.POST_OPS_APPEND_SUM.invokeExact(
                                            operations, 1f, 0, F32));
            DnnlObjects.call(
                    "dnnl_primitive_attr_set_post_ops",
                    () ->
                            (int)
                                    DnnlFunctions.ATTR_SET_POST_OPS.invokeExact(
                                            attributes, operations));
        }
        return attributes;
    }

    private long memory(long engine, long descriptor) {
        return objects.create(
                "dnnl_memory_create",
                to -> (int) DnnlFunctions.MEMORY_CREATE.invokeExact(to, descriptor, engine, 0L),
                DnnlFunctions.MEMORY_DESTROY);
    }

    private static long scratchDescriptor(long description) {
        try {
            return (long)
                    DnnlFunctions.PRIMITIVE_DESC_QUERY_MD.invokeExact(
                            description, QUERY_SCRATCHPAD, 0);
        } catch (Throwable e) {
            throw OneDnn.rethrown(e);
        }
    }

    private static long size(long descriptor) {
        try {
            return (long) DnnlFunctions.MEMORY_DESC_GET_SIZE.invokeExact(descriptor);
        } catch (Throwable e) {
            throw OneDnn.rethrown(e);
        }
    }

    /** An array of {@code struct { int which; dnnl_memory_t memory; }}. */
    private MemorySegment arguments() {
        int[] which = {SOURCE, WEIGHTS, DESTINATION, SCRATCHPAD};
        long[] memories = {source, weights, destination, scratchpad};
        MemorySegment array = arena.allocate(16L * which.length, 8);
        for (int i = 0; i < which.length; i++) {
            array.set(ValueLayout.JAVA_INT, 16L * i, which[i]);
            array.set(ValueLayout.JAVA_LONG, 16L * i + 8, memories[i]);
        }
        return array;
    }

    @Override
    public void close() {
        objects.close();
        arena.close();
    }
}
