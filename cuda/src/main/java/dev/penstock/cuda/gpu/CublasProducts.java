package dev.penstock.cuda.gpu;

import dev.penstock.cuda.cublas.Cublas;
import dev.penstock.cuda.cublas.CublasMultiplier;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceBuffer;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Gpus;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.cuda.memory.Scratch;
import jcuda.CudaException;

/**
 * Matrix products by cuBLAS. It wants both factors of one type, so those in F32 are rounded into
 * scratch where bf16 is multiplied. Rows of a weight gradient are summed in an order of its own:
 * other slices, other bits.
 */
final class CublasProducts implements GpuProducts {
    /** Rows that begin at 16 bytes are what tensor cores want. */
    private static final int STRIDE_UNIT = 8;

    private static final long MIB = 1 << 20;

    private final GpuContext gpu;
    private final CublasMultiplier cublas;
    private final GpuElements elements;
    private final DeviceScope scope;
    private final Scratch left;
    private final Scratch right;
    private final Product product = new Product();
    private final long[] numbers = new long[13];

    private CublasProducts(
            GpuContext gpu, CublasMultiplier cublas, GpuElements elements, DeviceScope scope) {
        this.gpu = gpu;
        this.cublas = cublas;
        this.elements = elements;
        this.scope = scope;
        this.left = new Scratch(scope, "left factor");
        this.right = new Scratch(scope, "right factor");
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
            return new CublasProducts(
                    gpu,
                    library.multiplier(
                            gpu.stream().handle(), workspace.address(), workspace.bytes()),
                    elements,
                    scope);
        } catch (RuntimeException e) {
            scope.close();
            throw e;
        }
    }

    /** What NVIDIA recommends: 32 MiB from Hopper on, 4 MiB before. */
    static long workspaceBytes(String computeCapability) {
        int major =
                Integer.parseInt(computeCapability.substring(0, computeCapability.indexOf('.')));
        return (major >= 9 ? 32 : 4) * MIB;
    }

    /** A factor as cuBLAS takes it. */
    private record Operand(long address, int stride) {
        static Operand of(Tensor tensor) {
            return new Operand(GpuBuffer.addressOf(tensor), tensor.stride());
        }
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
        Operand x = halves ? narrow(a, left) : Operand.of(a);
        Operand y = halves ? narrow(b, right) : Operand.of(b);
        int k = transposeA ? a.rows() : a.columns();
        if (gpu.collects()) {
            numbers[0] = halves ? 1 : 0;
            numbers[1] = transposeA ? 1 : 0;
            numbers[2] = transposeB ? 1 : 0;
            numbers[3] = c.rows();
            numbers[4] = c.columns();
            numbers[5] = k;
            numbers[6] = x.address();
            numbers[7] = x.stride();
            numbers[8] = y.address();
            numbers[9] = y.stride();
            numbers[10] = accumulate ? 1 : 0;
            numbers[11] = GpuBuffer.addressOf(c);
            numbers[12] = c.stride();
            gpu.collect(product, numbers, numbers.length);
            return;
        }
        gpu.giving();
        multiply(
                multiply,
                transposeA,
                transposeB,
                c.rows(),
                c.columns(),
                k,
                x,
                y,
                accumulate,
                GpuBuffer.addressOf(c),
                c.stride());
        gpu.gave();
    }

    private void multiply(
            DType factors,
            boolean transposeA,
            boolean transposeB,
            int m,
            int n,
            int k,
            Operand x,
            Operand y,
            boolean accumulate,
            long c,
            int strideC) {
        try {
            gpu.bind();
            cublas.multiply(
                    factors,
                    transposeA,
                    transposeB,
                    m,
                    n,
                    k,
                    x.address(),
                    x.stride(),
                    y.address(),
                    y.stride(),
                    accumulate,
                    c,
                    strideC);
        } catch (DeviceException e) {
            gpu.requireWell("multiplying by cuBLAS on GPU " + gpu.index());
            throw new DeviceException(
                    "multiplying on GPU %d: %s; try gemm = kernels"
                            .formatted(gpu.index(), e.getMessage()),
                    e);
        }
    }

    /** A product as it is collected. */
    private final class Product implements StreamWork {
        @Override
        public String name() {
            return "product of cuBLAS";
        }

        @Override
        public void give(long[] from, int at) {
            multiply(
                    from[at] == 1 ? DType.BF16 : DType.F32,
                    from[at + 1] == 1,
                    from[at + 2] == 1,
                    (int) from[at + 3],
                    (int) from[at + 4],
                    (int) from[at + 5],
                    new Operand(from[at + 6], (int) from[at + 7]),
                    new Operand(from[at + 8], (int) from[at + 9]),
                    from[at + 10] == 1,
                    from[at + 11],
                    (int) from[at + 12]);
        }
    }

    @Override
    public void weightGradient(
            DType multiply, Tensor x, Tensor dy, Tensor dWeight, TokenBlocks blocks) {
        gemm(multiply, true, x, false, dy, dWeight, true);
    }

    private Operand narrow(Tensor factor, Scratch scratch) {
        if (factor.type() == DType.BF16) {
            return Operand.of(factor);
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
        return "cuBLAS %s in %s".formatted(cublas.library().version(), cublas.library().file());
    }

    @Override
    public String fingerprint() {
        return "cublas-" + cublas.library().version();
    }

    /** Never throws: a lost GPU closes too. */
    @Override
    public void close() {
        try {
            gpu.bind();
            cublas.close();
        } catch (CudaException e) {
            System.getLogger(CublasProducts.class.getName())
                    .log(System.Logger.Level.WARNING, "closing cuBLAS", e);
        }
        left.close();
        right.close();
        scope.close();
    }
}
