package dev.penstock.cuda.gpu;

import static java.util.Objects.requireNonNull;

import dev.penstock.cuda.cublas.Cublas;
import dev.penstock.cuda.cublas.CublasLtMultiplier;
import dev.penstock.cuda.cublas.CublasMultiplier;
import dev.penstock.cuda.cublas.JoinedProduct;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceBuffer;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Epilogue;
import dev.penstock.cuda.device.Gelu;
import dev.penstock.cuda.device.Gpus;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.cuda.memory.Scratch;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import jcuda.CudaException;
import org.jspecify.annotations.Nullable;

/**
 * Matrix products by cuBLAS. It wants both factors of one type, so those in F32 are rounded into
 * scratch where bf16 is multiplied. Rows of a weight gradient are summed in an order of its own:
 * other slices, other bits.
 */
final class CublasProducts implements GpuProducts {
    /** Rows that begin at 16 bytes are what tensor cores want. */
    private static final int STRIDE_UNIT = 8;

    /** Below this a second product costs more than a slower one. */
    private static final int LONG_SIDE = 1_024;

    private static final long MIB = 1 << 20;

    private final GpuContext gpu;
    private final CublasMultiplier cublas;
    private final GpuElements elements;
    private final @Nullable CublasLtMultiplier joined;
    private final DeviceScope scope;
    private final Scratch left;
    private final Scratch right;
    private final Scratch bias;
    private final Scratch sums;
    private final Scratch inputs;
    private final Collected collected = new Collected();
    private final Map<CublasLtMultiplier.Plan, Joined> collectedPlans = new HashMap<>();
    private final Set<JoinedProduct> notJoined = new HashSet<>();
    private final long[] numbers = new long[13];

    private CublasProducts(
            GpuContext gpu,
            CublasMultiplier cublas,
            @Nullable CublasLtMultiplier joined,
            GpuElements elements,
            DeviceScope scope) {
        this.gpu = gpu;
        this.cublas = cublas;
        this.joined = joined;
        this.elements = elements;
        this.scope = scope;
        this.left = new Scratch(scope, "left factor");
        this.right = new Scratch(scope, "right factor");
        this.bias = new Scratch(scope, "rounded bias");
        this.sums = new Scratch(scope, "sums of a product");
        this.inputs = new Scratch(scope, "inputs of GELU");
    }

    /**
     * @throws DeviceException if this library does not serve this GPU; nothing is left behind
     */
    static CublasProducts open(
            GpuContext gpu,
            Gpus.Gpu description,
            Cublas library,
            GpuElements elements,
            DeviceScope parent) {
        DeviceScope scope = parent.child("cuBLAS", Long.MAX_VALUE);
        try {
            gpu.bind();
            DeviceBuffer workspace =
                    scope.allocate("workspace", workspaceBytes(description.computeCapability()));
            long stream = gpu.stream().handle();
            CublasMultiplier cublas =
                    library.multiplier(stream, workspace.address(), workspace.bytes());
            try {
                return new CublasProducts(
                        gpu,
                        cublas,
                        checked(
                                library.joinedMultiplier(
                                        stream, workspace.address(), workspace.bytes()),
                                gpu,
                                scope),
                        elements,
                        scope);
            } catch (RuntimeException e) {
                cublas.close();
                throw e;
            }
        } catch (RuntimeException e) {
            scope.close();
            throw e;
        }
    }

    private static @Nullable CublasLtMultiplier checked(
            @Nullable CublasLtMultiplier joined, GpuContext gpu, DeviceScope scope) {
        if (joined == null) {
            return null;
        }
        try {
            Optional<String> problem = JoinedCheck.problem(joined, gpu, scope);
            if (problem.isEmpty()) {
                return joined;
            }
            System.getLogger(CublasProducts.class.getName())
                    .log(
                            System.Logger.Level.WARNING,
                            "cublasLt is not used on GPU %d: %s"
                                    .formatted(gpu.index(), problem.get()));
        } catch (RuntimeException e) {
            joined.close();
            throw e;
        }
        joined.close();
        return null;
    }

    /** What NVIDIA recommends: 32 MiB from Hopper on, 4 MiB before. */
    static long workspaceBytes(String computeCapability) {
        int major =
                Integer.parseInt(computeCapability.substring(0, computeCapability.indexOf('.')));
        return (major >= 9 ? 32 : 4) * MIB;
    }

    /** A row-major matrix as cuBLAS takes it; stride in elements. */
    record Operand(long address, int stride) {
        Operand from(int row, int column, DType type) {
            return new Operand(address + type.bytes() * ((long) row * stride + column), stride);
        }
    }

    private Operand operand(Tensor tensor) {
        return new Operand(GpuBuffer.addressOf(tensor, gpu), tensor.stride());
    }

    @Override
    public void gemm(
            DType multiply,
            boolean transposeA,
            Tensor a,
            boolean transposeB,
            Tensor b,
            Tensor c,
            boolean accumulate) {
        boolean halves = multiply == DType.BF16;
        Operand x = halves ? narrow(a, left) : operand(a);
        Operand y = halves ? narrow(b, right) : operand(b);
        var whole =
                new Product(
                        multiply,
                        transposeA,
                        transposeB,
                        c.rows(),
                        c.columns(),
                        transposeA ? a.rows() : a.columns(),
                        x,
                        y,
                        accumulate,
                        operand(c));
        whole.aligned().forEach(this::give);
    }

    private void give(Product product) {
        if (product.isOfFewColumns()) {
            elements.dots(
                    product.a(),
                    product.b(),
                    product.c(),
                    DType.F32,
                    product.m(),
                    product.n(),
                    product.k(),
                    product.accumulate());
        } else if (product.isOfFewRows()) {
            elements.columnDots(
                    product.a(),
                    product.b(),
                    product.c(),
                    product.m(),
                    product.n(),
                    product.k(),
                    product.accumulate());
        } else if (gpu.collects()) {
            product.write(numbers);
            gpu.collect(collected, numbers, numbers.length);
        } else {
            gpu.giving();
            multiply(product);
            gpu.gave();
        }
    }

    /**
     * A product as cuBLAS takes it: {@code c[m, n] = a[m, k] b[k, n]}, or added to what is there.
     */
    private record Product(
            DType factors,
            boolean transposeA,
            boolean transposeB,
            int m,
            int n,
            int k,
            Operand a,
            Operand b,
            boolean accumulate,
            Operand c) {

        /**
         * Tensor cores get their factors 16 bytes at a time, so a matrix whose contiguous side is
         * no multiple of 8 makes cuBLAS take a much slower kernel; vocabularies are often odd. The
         * multiple of 8 and the few columns beyond it, apart, are as good as no remainder.
         */
        List<Product> aligned() {
            if (factors != DType.BF16) {
                return List.of(this);
            }
            if ((!transposeA || transposeB) && isLongAndOdd(k)) {
                int most = k - k % STRIDE_UNIT;
                return List.of(
                        sized(m, n, most, a, b, c, accumulate),
                        sized(
                                m,
                                n,
                                k - most,
                                a.from(transposeA ? most : 0, transposeA ? 0 : most, factors),
                                b.from(transposeB ? 0 : most, transposeB ? most : 0, factors),
                                c,
                                true));
            }
            if (transposeA && isLongAndOdd(m)) {
                int most = m - m % STRIDE_UNIT;
                Operand rest = a.from(0, most, factors);
                return List.of(
                        sized(most, n, k, a, b, c, accumulate),
                        sized(m - most, n, k, rest, b, c.from(most, 0, DType.F32), accumulate));
            }
            if (isLongAndOdd(n)) { // the contiguous side of c, and of b if it is not transposed
                int most = n - n % STRIDE_UNIT;
                Operand rest = b.from(transposeB ? most : 0, transposeB ? 0 : most, factors);
                return List.of(
                        sized(m, most, k, a, b, c, accumulate),
                        sized(m, n - most, k, a, rest, c.from(0, most, DType.F32), accumulate));
            }
            return List.of(this);
        }

        /**
         * Dot products, which cuBLAS takes 130 µs for where 4 do: the last column of the logits of
         * a vocabulary of 50,257.
         */
        boolean isOfFewColumns() {
            return !transposeA && transposeB && n < STRIDE_UNIT && isOfHalves();
        }

        /** The gradient of that column's weights, for which cuBLAS takes 200 µs. */
        boolean isOfFewRows() {
            return transposeA && !transposeB && m < STRIDE_UNIT && isOfHalves();
        }

        private boolean isOfHalves() {
            return factors == DType.BF16 && m > 0 && n > 0 && k > 0;
        }

        private static boolean isLongAndOdd(int side) {
            return side >= LONG_SIDE && side % STRIDE_UNIT != 0;
        }

        private Product sized(
                int rows, int columns, int deep, Operand x, Operand y, Operand to, boolean adds) {
            return new Product(
                    factors, transposeA, transposeB, rows, columns, deep, x, y, adds, to);
        }

        void write(long[] to) {
            to[0] = factors == DType.BF16 ? 1 : 0;
            to[1] = transposeA ? 1 : 0;
            to[2] = transposeB ? 1 : 0;
            to[3] = m;
            to[4] = n;
            to[5] = k;
            to[6] = a.address();
            to[7] = a.stride();
            to[8] = b.address();
            to[9] = b.stride();
            to[10] = accumulate ? 1 : 0;
            to[11] = c.address();
            to[12] = c.stride();
        }

        static Product read(long[] from, int at) {
            return new Product(
                    from[at] == 1 ? DType.BF16 : DType.F32,
                    from[at + 1] == 1,
                    from[at + 2] == 1,
                    (int) from[at + 3],
                    (int) from[at + 4],
                    (int) from[at + 5],
                    new Operand(from[at + 6], (int) from[at + 7]),
                    new Operand(from[at + 8], (int) from[at + 9]),
                    from[at + 10] == 1,
                    new Operand(from[at + 11], (int) from[at + 12]));
        }
    }

    private void multiply(Product product) {
        try {
            gpu.bind();
            cublas.multiply(
                    product.factors(),
                    product.transposeA(),
                    product.transposeB(),
                    product.m(),
                    product.n(),
                    product.k(),
                    product.a().address(),
                    product.a().stride(),
                    product.b().address(),
                    product.b().stride(),
                    product.accumulate(),
                    product.c().address(),
                    product.c().stride());
        } catch (DeviceException e) {
            throw failed(e);
        }
    }

    private DeviceException failed(DeviceException e) {
        gpu.requireWell("multiplying by cuBLAS on GPU " + gpu.index());
        return new DeviceException(
                "multiplying on GPU %d: %s; try gemm = kernels"
                        .formatted(gpu.index(), e.getMessage()),
                e);
    }

    /** Products as they are collected. */
    private final class Collected implements StreamWork {
        @Override
        public String name() {
            return "product of cuBLAS";
        }

        @Override
        public String describe(long[] from, int at) {
            Product product = Product.read(from, at);
            return "product [%d, %d] of %d%s"
                    .formatted(
                            product.m(),
                            product.n(),
                            product.k(),
                            product.accumulate() ? ", added" : "");
        }

        @Override
        public void give(long[] from, int at) {
            multiply(Product.read(from, at));
        }
    }

    @Override
    public void weightGradient(
            DType multiply, Tensor x, Tensor dy, Tensor dWeight, TokenBlocks blocks) {
        gemm(multiply, true, x, false, dy, dWeight, true);
    }

    @Override
    public boolean joins() {
        return joined != null;
    }

    @Override
    public void gemmThen(Tensor a, boolean transposeB, Tensor b, Epilogue epilogue, Tensor c) {
        if (c.elements() == 0) {
            return;
        }
        int rest = c.columns() % STRIDE_UNIT;
        if (epilogue instanceof Epilogue.Rounding
                && transposeB
                && rest > 0
                && c.columns() >= LONG_SIDE) {
            int most = c.columns() - rest;
            join(a, true, b.rows(0, most), epilogue, c.columns(0, most));
            elements.dots(
                    operand(a),
                    operand(b.rows(most, rest)),
                    operand(c.columns(most, rest)),
                    DType.BF16,
                    c.rows(),
                    rest,
                    a.columns(),
                    false);
        } else {
            join(a, transposeB, b, epilogue, c);
        }
    }

    private void join(Tensor a, boolean transposeB, Tensor b, Epilogue epilogue, Tensor c) {
        Tensor residual =
                epilogue instanceof Epilogue.BiasAndResidual(_, Tensor added) ? added : null;
        Tensor pre =
                switch (epilogue) {
                    case Epilogue.BiasAndGelu(_, Tensor kept) -> kept;
                    case Epilogue.GeluGradient(Tensor kept) -> kept;
                    case Epilogue.Rounding _, Epilogue.Bias _, Epilogue.BiasAndResidual _ -> null;
                };
        JoinedProduct product =
                new JoinedProduct(
                        code(epilogue),
                        c.type(),
                        transposeB,
                        c.rows(),
                        c.columns(),
                        a.columns(),
                        a.stride(),
                        b.stride(),
                        residual == null ? 0 : residual.stride(),
                        c.stride(),
                        pre == null ? 0 : pre.stride());
        Optional<CublasLtMultiplier.Plan> plan =
                isAligned(a)
                                && isAligned(b)
                                && isAligned(c)
                                && isAligned(residual)
                                && isAligned(pre)
                        ? plan(product)
                        : Optional.empty();
        if (plan.isEmpty()) {
            multiplyThen(product, a, b, epilogue, c);
            return;
        }
        long[] addresses = {
            address(a), address(b), address(residual), address(c), bias(epilogue), address(pre)
        };
        Joined work = collectedPlans.computeIfAbsent(plan.get(), Joined::new);
        if (gpu.collects()) {
            gpu.collect(work, addresses, addresses.length);
        } else {
            gpu.giving();
            work.give(addresses, 0);
            gpu.gave();
        }
    }

    private Optional<CublasLtMultiplier.Plan> plan(JoinedProduct product) {
        try {
            gpu.bind();
            return requireNonNull(joined).plan(product);
        } catch (DeviceException e) {
            throw failed(e);
        }
    }

    private static JoinedProduct.Epilogue code(Epilogue epilogue) {
        return switch (epilogue) {
            case Epilogue.Rounding _ -> JoinedProduct.Epilogue.NONE;
            case Epilogue.Bias _, Epilogue.BiasAndResidual _ -> JoinedProduct.Epilogue.BIAS;
            case Epilogue.BiasAndGelu _ -> JoinedProduct.Epilogue.GELU_AUX_BIAS;
            case Epilogue.GeluGradient _ -> JoinedProduct.Epilogue.DGELU;
        };
    }

    private boolean isAligned(@Nullable Tensor tensor) {
        return tensor == null
                || (address(tensor) % CublasLtMultiplier.ALIGNMENT == 0
                        && (long) tensor.stride()
                                        * tensor.type().bytes()
                                        % CublasLtMultiplier.ALIGNMENT
                                == 0);
    }

    private long address(@Nullable Tensor tensor) {
        return tensor == null ? 0 : GpuBuffer.addressOf(tensor, gpu);
    }

    /** A bias has the type of the result; 0 if there is none. */
    private long bias(Epilogue epilogue) {
        return switch (epilogue) {
            case Epilogue.Rounding _, Epilogue.GeluGradient _ -> 0;
            case Epilogue.Bias(Tensor added) -> rounded(added);
            case Epilogue.BiasAndGelu(Tensor added, _) -> rounded(added);
            case Epilogue.BiasAndResidual(Tensor added, _) -> address(added);
        };
    }

    private long rounded(Tensor added) {
        Tensor to = bias.matrix(DType.BF16, 1, added.columns());
        elements.copy(added, to);
        return address(to);
    }

    /** What {@link #join} does, where cublasLt has no algorithm: a product, and then kernels. */
    private void multiplyThen(
            JoinedProduct product, Tensor a, Tensor b, Epilogue epilogue, Tensor c) {
        if (notJoined.add(product)) {
            System.getLogger(CublasProducts.class.getName())
                    .log(
                            System.Logger.Level.WARNING,
                            "cublasLt has no algorithm for a %s: what follows is done by kernels"
                                    .formatted(product));
        }
        Tensor y = c.type() == DType.F32 ? c : sums.matrix(DType.F32, c.rows(), c.columns());
        gemm(DType.BF16, false, a, product.transposeB(), b, y, false);
        switch (epilogue) {
            case Epilogue.Rounding _ -> elements.copy(y, c);
            case Epilogue.Bias(Tensor added) -> elements.addBiasRounded(y, added, c);
            case Epilogue.BiasAndResidual(Tensor added, Tensor residual) ->
                    elements.addBiasAndResidual(y, added, residual);
            case Epilogue.BiasAndGelu(Tensor added, Tensor pre) -> {
                elements.addBiasRounded(y, added, pre);
                elements.geluRounded(y, added, c, Gelu.TANH);
            }
            case Epilogue.GeluGradient(Tensor pre) -> {
                Tensor input = inputs.matrix(DType.F32, c.rows(), c.columns());
                elements.copy(pre, input);
                elements.geluBackward(input, y, Gelu.TANH);
                elements.copy(y, c);
            }
        }
    }

    /** A product with its epilogue, of addresses. */
    private final class Joined implements StreamWork {
        private final CublasLtMultiplier.Plan plan;

        Joined(CublasLtMultiplier.Plan plan) {
            this.plan = plan;
        }

        @Override
        public String name() {
            return "product of cublasLt";
        }

        @Override
        public String describe(long[] from, int at) {
            return plan.product().toString();
        }

        @Override
        public void give(long[] from, int at) {
            try {
                gpu.bind();
                plan.multiply(
                        from[at],
                        from[at + 1],
                        from[at + 2],
                        from[at + 3],
                        from[at + 4],
                        from[at + 5]);
            } catch (DeviceException e) {
                throw failed(e);
            }
        }
    }

    private Operand narrow(Tensor factor, Scratch scratch) {
        if (factor.type() == DType.BF16) {
            return operand(factor);
        }
        int stride = narrowStride(factor);
        long address = scratch.reserve(narrowBytes(factor));
        elements.narrow(factor, address, stride);
        return new Operand(address, stride);
    }

    private static int narrowStride(Tensor factor) {
        return Math.ceilDiv(factor.columns(), STRIDE_UNIT) * STRIDE_UNIT;
    }

    /** Of an F32 factor that is rounded to be multiplied as BF16. */
    static long narrowBytes(Tensor factor) {
        return (long) DType.BF16.bytes() * narrowStride(factor) * factor.rows();
    }

    @Override
    public String name() {
        return "cuBLAS %s in %s%s"
                .formatted(
                        cublas.library().version(),
                        cublas.library().file(),
                        joins() ? "" : " without cublasLt");
    }

    @Override
    public String fingerprint() {
        return (joins() ? "cublas-lt-" : "cublas-") + cublas.library().version();
    }

    /** Never throws: a lost GPU closes too. */
    @Override
    public void close() {
        try {
            gpu.bind();
            if (joined != null) {
                joined.close();
            }
            cublas.close();
        } catch (CudaException e) {
            System.getLogger(CublasProducts.class.getName())
                    .log(System.Logger.Level.WARNING, "closing cuBLAS", e);
        }
        left.close();
        right.close();
        bias.close();
        sums.close();
        inputs.close();
        scope.close();
    }
}
