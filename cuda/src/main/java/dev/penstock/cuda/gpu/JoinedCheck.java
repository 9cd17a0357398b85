package dev.penstock.cuda.gpu;

import dev.penstock.cuda.cublas.CublasLtMultiplier;
import dev.penstock.cuda.cublas.JoinedProduct;
import dev.penstock.cuda.cublas.JoinedProduct.Epilogue;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Tensor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Optional;

/**
 * Whether cublasLt computes what is expected of it: one small product with each epilogue, of
 * numbers that bf16 holds, against the same on the host. A library that reads a bias in another
 * type, or has another GELU, is not used, instead of training something else.
 */
final class JoinedCheck {
    private static final int M = 16;
    private static final int N = 24;
    private static final int K = 32;

    /** Of results of the size of one, which bf16 rounds to one part in 256. */
    private static final double TOLERANCE = 0.02;

    private final CublasLtMultiplier joined;
    private final GpuContext gpu;
    private final DeviceScope scope;

    private JoinedCheck(CublasLtMultiplier joined, GpuContext gpu, DeviceScope scope) {
        this.joined = joined;
        this.gpu = gpu;
        this.scope = scope;
    }

    /** Returns what it computes otherwise; empty if nothing. */
    static Optional<String> problem(CublasLtMultiplier joined, GpuContext gpu, DeviceScope parent) {
        try (DeviceScope scope = parent.child("check of cublasLt", Long.MAX_VALUE)) {
            var check = new JoinedCheck(joined, gpu, scope);
            return List.of(
                            product(Epilogue.NONE, DType.BF16, true, false),
                            product(Epilogue.BIAS, DType.BF16, false, false),
                            product(Epilogue.BIAS, DType.F32, false, true),
                            product(Epilogue.GELU_AUX_BIAS, DType.BF16, false, false),
                            product(Epilogue.DGELU, DType.BF16, true, false))
                    .stream()
                    .flatMap(product -> check.problem(product).stream())
                    .findFirst();
        }
    }

    private static JoinedProduct product(
            Epilogue epilogue, DType result, boolean transposeB, boolean adds) {
        boolean hasAux = epilogue == Epilogue.GELU_AUX_BIAS || epilogue == Epilogue.DGELU;
        return new JoinedProduct(
                epilogue,
                result,
                transposeB,
                M,
                N,
                K,
                K,
                transposeB ? K : N,
                adds ? N : 0,
                N,
                hasAux ? N : 0);
    }

    private Optional<String> problem(JoinedProduct of) {
        Optional<CublasLtMultiplier.Plan> plan = joined.plan(of);
        if (plan.isEmpty()) {
            return Optional.empty(); // kernels do it
        }
        Tensor d = scope.tensor("d", of.result(), M, N);
        Tensor aux = tensor(DType.BF16, M, N, JoinedCheck::aux);
        plan.get()
                .multiply(
                        address(tensor(DType.BF16, M, K, JoinedCheck::a)),
                        address(
                                of.transposeB()
                                        ? tensor(DType.BF16, N, K, (j, l) -> b(l, j))
                                        : tensor(DType.BF16, K, N, JoinedCheck::b)),
                        of.strideC() > 0
                                ? address(tensor(DType.F32, M, N, JoinedCheck::residual))
                                : 0,
                        address(d),
                        of.epilogue() == Epilogue.NONE || of.epilogue() == Epilogue.DGELU
                                ? 0
                                : address(tensor(of.result(), 1, N, (_, j) -> bias(j))),
                        of.strideAux() > 0 ? address(aux) : 0);
        MemorySegment results = d.contents();
        MemorySegment kept = aux.contents();
        for (int i = 0; i < M; i++) {
            for (int j = 0; j < N; j++) {
                double sum = sum(i, j);
                double expected =
                        switch (of.epilogue()) {
                            case NONE -> sum;
                            case BIAS -> sum + bias(j) + (of.strideC() > 0 ? residual(i, j) : 0);
                            case GELU_AUX_BIAS -> gelu(sum + bias(j));
                            case DGELU -> sum * geluGradient(aux(i, j));
                        };
                double got = at(results, of.result(), i * N + j);
                double input = of.epilogue() == Epilogue.GELU_AUX_BIAS ? sum + bias(j) : aux(i, j);
                if (!isNear(got, expected) || !isNear(at(kept, DType.BF16, i * N + j), input)) {
                    return Optional.of(
                            "%s: expected %.4f at [%d, %d], got %.4f"
                                    .formatted(of, expected, i, j, got));
                }
            }
        }
        return Optional.empty();
    }

    private static boolean isNear(double got, double expected) {
        return Math.abs(got - expected) <= TOLERANCE * Math.max(1, Math.abs(expected));
    }

    private static double a(int i, int l) {
        return ((i * 7 + l * 3) % 11 - 5) / 8.0;
    }

    private static double b(int l, int j) {
        return ((l * 5 + j * 2) % 13 - 6) / 16.0;
    }

    private static double bias(int j) {
        return (j % 5 - 2) / 4.0;
    }

    private static double residual(int i, int j) {
        return ((i + j) % 7 - 3) / 2.0;
    }

    private static double aux(int i, int j) {
        return ((i * 3 + j) % 9 - 4) / 2.0;
    }

    private static double sum(int i, int j) {
        double sum = 0;
        for (int l = 0; l < K; l++) {
            sum += a(i, l) * b(l, j);
        }
        return sum;
    }

    private static double gelu(double x) {
        return 0.5 * x * (1 + tanh(x));
    }

    private static double geluGradient(double x) {
        double tanh = tanh(x);
        double inner = Math.sqrt(2 / Math.PI) * (1 + 3 * 0.044715 * x * x);
        return 0.5 * (1 + tanh) + 0.5 * x * (1 - tanh * tanh) * inner;
    }

    private static double tanh(double x) {
        return Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x * x * x));
    }

    private interface Element {
        double at(int row, int column);
    }

    private Tensor tensor(DType type, int rows, int columns, Element element) {
        Tensor tensor = scope.tensor("of a check", type, rows, columns);
        float[] floats = new float[rows * columns];
        short[] halves = new short[rows * columns];
        for (int i = 0; i < floats.length; i++) {
            floats[i] = (float) element.at(i / columns, i % columns);
            halves[i] = (short) (Float.floatToRawIntBits(floats[i]) >>> 16);
        }
        tensor.write(
                type == DType.F32 ? MemorySegment.ofArray(floats) : MemorySegment.ofArray(halves));
        return tensor;
    }

    private static double at(MemorySegment contents, DType type, int index) {
        return type == DType.F32
                ? contents.getAtIndex(ValueLayout.JAVA_FLOAT_UNALIGNED, index)
                : Float.intBitsToFloat(
                        contents.getAtIndex(ValueLayout.JAVA_SHORT_UNALIGNED, index) << 16);
    }

    private long address(Tensor tensor) {
        return GpuBuffer.addressOf(tensor, gpu);
    }
}
