package dev.penstock.cuda.cublas;

import dev.penstock.cuda.device.DType;

/**
 * A product of two BF16 matrices and what follows it, row-major: {@code d[m, n] = epilogue(a[m, k]
 * op(b) + c)}. Strides in elements.
 *
 * @param result of d and c: BF16 or F32; a bias has this type too
 * @param transposeB whether b is {@code [n, k]}
 * @param strideC 0 where nothing is added
 * @param strideAux 0 where the epilogue has no matrix of its own
 */
public record JoinedProduct(
        Epilogue epilogue,
        DType result,
        boolean transposeB,
        int m,
        int n,
        int k,
        int strideA,
        int strideB,
        int strideC,
        int strideD,
        int strideAux) {

    /** What cublasLt does with sums before it writes them. */
    public enum Epilogue {
        NONE(1, "rounding"),
        BIAS(4, "bias"),
        /** {@code aux = sums + bias; d = gelu(sums + bias)}, tanh form. */
        GELU_AUX_BIAS(164, "bias and GELU"),
        /** {@code d = sums * gelu'(aux)}. */
        DGELU(192, "gradient of GELU");

        /** Of cublasLtEpilogue_t. */
        private final int code;

        private final String words;

        Epilogue(int code, String words) {
            this.code = code;
            this.words = words;
        }

        int code() {
            return code;
        }

        boolean hasBias() {
            return this == BIAS || this == GELU_AUX_BIAS;
        }
    }

    @Override
    public String toString() {
        String residual = strideC > 0 ? " and residual" : "";
        return "product with %s%s [%d, %d] of %d".formatted(epilogue.words, residual, m, n, k);
    }
}
