package dev.penstock.cuda.onednn;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;

/**
 * The C functions, looked up in the libraries that this class loader has loaded: initialize only
 * after {@link OneDnn} loaded them. Constants, so that the compiler links calls directly. Pointers
 * are longs; all functions return {@code dnnl_status_t}, 0 for success, where not said otherwise.
 */
final class DnnlFunctions {
    /** void omp_set_num_threads(int) */
    static final MethodHandle OMP_SET_NUM_THREADS =
            find("omp_set_num_threads", FunctionDescriptor.ofVoid(JAVA_INT));

    /** const dnnl_version_t* dnnl_version(void) */
    static final MethodHandle VERSION = find("dnnl_version", FunctionDescriptor.of(ADDRESS));

    /** dnnl_status_t dnnl_set_max_cpu_isa(dnnl_cpu_isa_t) */
    static final MethodHandle SET_MAX_CPU_ISA =
            find("dnnl_set_max_cpu_isa", FunctionDescriptor.of(JAVA_INT, JAVA_INT));

    /** dnnl_cpu_isa_t dnnl_get_effective_cpu_isa(void) */
    static final MethodHandle EFFECTIVE_CPU_ISA =
            find("dnnl_get_effective_cpu_isa", FunctionDescriptor.of(JAVA_INT));

    /** sgemm(ta, tb, M, N, K, alpha, A, lda, B, ldb, beta, C, ldc), row-major */
    static final MethodHandle SGEMM =
            find(
                    "dnnl_sgemm",
                    FunctionDescriptor.of(
                            JAVA_INT,
                            JAVA_BYTE,
                            JAVA_BYTE,
                            JAVA_LONG,
                            JAVA_LONG,
                            JAVA_LONG,
                            JAVA_FLOAT,
                            JAVA_LONG,
                            JAVA_LONG,
                            JAVA_LONG,
                            JAVA_LONG,
                            JAVA_FLOAT,
                            JAVA_LONG,
                            JAVA_LONG));

    /** engine_create(engine*, kind, index) */
    static final MethodHandle ENGINE_CREATE =
            status("dnnl_engine_create", ADDRESS, JAVA_INT, JAVA_LONG);

    static final MethodHandle ENGINE_DESTROY = status("dnnl_engine_destroy", JAVA_LONG);

    /** stream_create(stream*, engine, flags) */
    static final MethodHandle STREAM_CREATE =
            status("dnnl_stream_create", ADDRESS, JAVA_LONG, JAVA_INT);

    static final MethodHandle STREAM_WAIT = status("dnnl_stream_wait", JAVA_LONG);

    static final MethodHandle STREAM_DESTROY = status("dnnl_stream_destroy", JAVA_LONG);

    /** memory_desc_create_with_strides(desc*, ndims, dims[], type, strides[]) */
    static final MethodHandle MEMORY_DESC_CREATE =
            status(
                    "dnnl_memory_desc_create_with_strides",
                    ADDRESS,
                    JAVA_INT,
                    ADDRESS,
                    JAVA_INT,
                    ADDRESS);

    static final MethodHandle MEMORY_DESC_DESTROY = status("dnnl_memory_desc_destroy", JAVA_LONG);

    /** memory_create(memory*, desc, engine, handle) */
    static final MethodHandle MEMORY_CREATE =
            status("dnnl_memory_create", ADDRESS, JAVA_LONG, JAVA_LONG, JAVA_LONG);

    /** memory_set_data_handle(memory, handle) */
    static final MethodHandle MEMORY_SET_DATA_HANDLE =
            status("dnnl_memory_set_data_handle", JAVA_LONG, JAVA_LONG);

    static final MethodHandle MEMORY_DESTROY = status("dnnl_memory_destroy", JAVA_LONG);

    static final MethodHandle POST_OPS_CREATE = status("dnnl_post_ops_create", ADDRESS);

    /** post_ops_append_sum(ops, scale, zero point, type) */
    static final MethodHandle POST_OPS_APPEND_SUM =
            status("dnnl_post_ops_append_sum", JAVA_LONG, JAVA_FLOAT, JAVA_INT, JAVA_INT);

    static final MethodHandle POST_OPS_DESTROY = status("dnnl_post_ops_destroy", JAVA_LONG);

    static final MethodHandle ATTR_CREATE = status("dnnl_primitive_attr_create", ADDRESS);

    static final MethodHandle ATTR_SET_POST_OPS =
            status("dnnl_primitive_attr_set_post_ops", JAVA_LONG, JAVA_LONG);

    /** set_scratchpad_mode(attr, mode) */
    static final MethodHandle ATTR_SET_SCRATCHPAD_MODE =
            status("dnnl_primitive_attr_set_scratchpad_mode", JAVA_LONG, JAVA_INT);

    static final MethodHandle ATTR_DESTROY = status("dnnl_primitive_attr_destroy", JAVA_LONG);

    /** matmul_primitive_desc_create(desc*, engine, source, weights, bias, destination, attr) */
    static final MethodHandle MATMUL_DESC_CREATE =
            status(
                    "dnnl_matmul_primitive_desc_create",
                    ADDRESS,
                    JAVA_LONG,
                    JAVA_LONG,
                    JAVA_LONG,
                    JAVA_LONG,
                    JAVA_LONG,
                    JAVA_LONG);

    /** const memory_desc* primitive_desc_query_md(desc, what, index) */
    static final MethodHandle PRIMITIVE_DESC_QUERY_MD =
            find(
                    "dnnl_primitive_desc_query_md",
                    FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_INT));

    /** size_t memory_desc_get_size(desc) */
    static final MethodHandle MEMORY_DESC_GET_SIZE =
            find("dnnl_memory_desc_get_size", FunctionDescriptor.of(JAVA_LONG, JAVA_LONG));

    static final MethodHandle PRIMITIVE_DESC_DESTROY =
            status("dnnl_primitive_desc_destroy", JAVA_LONG);

    /** primitive_create(primitive*, desc) */
    static final MethodHandle PRIMITIVE_CREATE =
            status("dnnl_primitive_create", ADDRESS, JAVA_LONG);

    /** primitive_execute(primitive, stream, count, args[]) */
    static final MethodHandle PRIMITIVE_EXECUTE =
            status("dnnl_primitive_execute", JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_LONG);

    static final MethodHandle PRIMITIVE_DESTROY = status("dnnl_primitive_destroy", JAVA_LONG);

    private DnnlFunctions() {}

    private static MethodHandle status(String name, MemoryLayout... arguments) {
        return find(name, FunctionDescriptor.of(JAVA_INT, arguments));
    }

    private static MethodHandle find(String name, FunctionDescriptor descriptor) {
        return Linker.nativeLinker()
                .downcallHandle(SymbolLookup.loaderLookup().findOrThrow(name), descriptor);
    }
}
