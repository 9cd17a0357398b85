package dev.penstock.cuda.cublas;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;

/**
 * The C functions of libcublasLt. Device pointers, handles, descriptors, layouts and streams are
 * longs; all functions return {@code cublasStatus_t}, 0 for success.
 *
 * @param create (cublasLtHandle_t*)
 * @param destroy (handle)
 * @param createProduct cublasLtMatmulDescCreate (descriptor*, compute type, type of scales)
 * @param setProduct cublasLtMatmulDescSetAttribute (descriptor, attribute, value*, size_t bytes)
 * @param destroyProduct cublasLtMatmulDescDestroy (descriptor)
 * @param createLayout cublasLtMatrixLayoutCreate (layout*, type, rows, columns, leading dimension)
 * @param destroyLayout cublasLtMatrixLayoutDestroy (layout)
 * @param createPreference cublasLtMatmulPreferenceCreate (preference*)
 * @param setPreference cublasLtMatmulPreferenceSetAttribute (preference, attribute, value*, size_t)
 * @param destroyPreference cublasLtMatmulPreferenceDestroy (preference)
 * @param choose cublasLtMatmulAlgoGetHeuristic (handle, descriptor, layouts of a, b, c and d,
 *     preference, most results, results*, found*)
 * @param multiply cublasLtMatmul (handle, descriptor, alpha*, a, layout, b, layout, beta*, c,
 *     layout, d, layout, algorithm*, workspace, size_t bytes, stream)
 */
record CublasLtFunctions(
        MethodHandle create,
        MethodHandle destroy,
        MethodHandle createProduct,
        MethodHandle setProduct,
        MethodHandle destroyProduct,
        MethodHandle createLayout,
        MethodHandle destroyLayout,
        MethodHandle createPreference,
        MethodHandle setPreference,
        MethodHandle destroyPreference,
        MethodHandle choose,
        MethodHandle multiply) {

    /**
     * Binds the functions.
     *
     * @throws java.util.NoSuchElementException if it lacks a function
     */
    static CublasLtFunctions of(SymbolLookup library) {
        return new CublasLtFunctions(
                CublasFunctions.status(library, "cublasLtCreate", ADDRESS),
                CublasFunctions.status(library, "cublasLtDestroy", JAVA_LONG),
                CublasFunctions.status(
                        library, "cublasLtMatmulDescCreate", ADDRESS, JAVA_INT, JAVA_INT),
                CublasFunctions.status(
                        library,
                        "cublasLtMatmulDescSetAttribute",
                        JAVA_LONG,
                        JAVA_INT,
                        ADDRESS,
                        JAVA_LONG),
                CublasFunctions.status(library, "cublasLtMatmulDescDestroy", JAVA_LONG),
                CublasFunctions.status(
                        library,
                        "cublasLtMatrixLayoutCreate",
                        ADDRESS,
                        JAVA_INT,
                        JAVA_LONG,
                        JAVA_LONG,
                        JAVA_LONG),
                CublasFunctions.status(library, "cublasLtMatrixLayoutDestroy", JAVA_LONG),
                CublasFunctions.status(library, "cublasLtMatmulPreferenceCreate", ADDRESS),
                CublasFunctions.status(
                        library,
                        "cublasLtMatmulPreferenceSetAttribute",
                        JAVA_LONG,
                        JAVA_INT,
                        ADDRESS,
                        JAVA_LONG),
                CublasFunctions.status(library, "cublasLtMatmulPreferenceDestroy", JAVA_LONG),
                CublasFunctions.status(
                        library,
                        "cublasLtMatmulAlgoGetHeuristic",
                        JAVA_LONG,
                        JAVA_LONG,
                        JAVA_LONG,
                        JAVA_LONG,
                        JAVA_LONG,
                        JAVA_LONG,
                        JAVA_LONG,
                        JAVA_INT,
                        ADDRESS,
                        ADDRESS),
                CublasFunctions.status(
                        library,
                        "cublasLtMatmul",
                        JAVA_LONG,
                        JAVA_LONG,
                        ADDRESS,
                        JAVA_LONG,
                        JAVA_LONG,
                        JAVA_LONG,
                        JAVA_LONG,
                        ADDRESS,
                        JAVA_LONG,
                        JAVA_LONG,
                        JAVA_LONG,
                        JAVA_LONG,
                        ADDRESS,
                        JAVA_LONG,
                        JAVA_LONG,
                        JAVA_LONG));
    }
}
