package dev.penstock.cuda.cublas;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;

/**
 * The C functions of one library. Device pointers, handles and streams are longs; all functions
 * return {@code cublasStatus_t}, 0 for success.
 *
 * @param getProperty (libraryPropertyType, int* value)
 * @param create (cublasHandle_t*)
 * @param destroy (handle)
 * @param setStream (handle, stream); forgets the workspace
 * @param setWorkspace (handle, device pointer, size_t bytes)
 * @param setMathMode (handle, mode)
 * @param gemmEx (handle, op a, op b, m, n, k, alpha*, a, type, lda, b, type, ldb, beta*, c, type,
 *     ldc, compute type, algorithm), column-major
 */
record CublasFunctions(
        MethodHandle getProperty,
        MethodHandle create,
        MethodHandle destroy,
        MethodHandle setStream,
        MethodHandle setWorkspace,
        MethodHandle setMathMode,
        MethodHandle gemmEx) {

    /**
     * Binds the functions.
     *
     * @throws java.util.NoSuchElementException if it lacks a function
     */
    static CublasFunctions of(SymbolLookup library) {
        return new CublasFunctions(
                status(library, "cublasGetProperty", JAVA_INT, ADDRESS),
                status(library, "cublasCreate_v2", ADDRESS),
                status(library, "cublasDestroy_v2", JAVA_LONG),
                status(library, "cublasSetStream_v2", JAVA_LONG, JAVA_LONG),
                status(library, "cublasSetWorkspace_v2", JAVA_LONG, JAVA_LONG, JAVA_LONG),
                status(library, "cublasSetMathMode", JAVA_LONG, JAVA_INT),
                status(
                        library,
                        "cublasGemmEx",
                        JAVA_LONG,
                        JAVA_INT,
                        JAVA_INT,
                        JAVA_INT,
                        JAVA_INT,
                        JAVA_INT,
                        ADDRESS,
                        JAVA_LONG,
                        JAVA_INT,
                        JAVA_INT,
                        JAVA_LONG,
                        JAVA_INT,
                        JAVA_INT,
                        ADDRESS,
                        JAVA_LONG,
                        JAVA_INT,
                        JAVA_INT,
                        JAVA_INT,
                        JAVA_INT));
    }

    static MethodHandle status(SymbolLookup library, String name, MemoryLayout... arguments) {
        return Linker.nativeLinker()
                .downcallHandle(
                        library.findOrThrow(name), FunctionDescriptor.of(JAVA_INT, arguments));
    }
}
