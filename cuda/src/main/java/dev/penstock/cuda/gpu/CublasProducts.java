package dev.penstock.cuda.gpu;

import dev.penstock.cuda.cublas.Cublas;
import dev.penstock.cuda.cublas.CublasMultiplier;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceBuffer;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.DeviceScope;
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
            GpuProbe.Gpu description,
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
        try {
            gpu.bind();
            gpu.giving();
            cublas.multiply(
                    multiply,
                    transposeA,
                    transposeB,
                    c.rows(),
                    c.columns(),
                    transposeA ? a.rows() : a.columns(),
                    x.address(),
                    x.stride(),
                    y.address(),
                    y.stride(),
                    accumulate,
                    GpuBuffer.addressOf(c),
                    c.stride());
        } catch (DeviceException e) {
            gpu.requireWell("multiplying by cuBLAS on GPU " + gpu.index());
            throw new DeviceException(
                    "multiplying on GPU %d: %s; try gemm = kernels"
                            .formatted(gpu.index(), e.getMessage()),
                    e);
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
