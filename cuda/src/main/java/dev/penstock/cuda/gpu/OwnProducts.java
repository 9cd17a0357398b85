package dev.penstock.cuda.gpu;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;

/** Matrix products by the kernels of {@code products.cu}. */
final class OwnProducts implements GpuProducts {
    private static final int FLOAT_TILE = 64;
    private static final int HALF_TILE = 128;
    private static final int THREADS = 256;

    private final Launch launch;
    private final GpuModule.Function productOfFloats;
    private final GpuModule.Function productOfHalves;
    private final String reason;

    /**
     * @param reason why no library multiplies
     */
    OwnProducts(GpuModule module, Launch launch, String reason) {
        this.launch = launch;
        this.reason = reason;
        productOfFloats = module.function("productOfFloats");
        productOfHalves = module.function("productOfHalves");
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
        launch.begin()
                .factor(factor(a, c.rows(), transposeA))
                // b comes as [k, n]: k runs along the rows unless it is transposed
                .factor(factor(b, c.columns(), !transposeB))
                .view(c)
                .integer(transposeA ? a.rows() : a.columns())
                .integer(accumulate ? 1 : 0)
                .anyOrder();
        run(multiply, c);
    }

    @Override
    public void weightGradient(
            DType multiply, Tensor x, Tensor dy, Tensor dWeight, TokenBlocks blocks) {
        launch.begin()
                .factor(factor(x, dWeight.rows(), true))
                .factor(factor(dy, dWeight.columns(), true))
                .view(dWeight)
                .integer(x.rows())
                .integer(1)
                .order(blocks);
        run(multiply, dWeight);
    }

    @Override
    public String name() {
        return "our own products (" + reason + ")";
    }

    @Override
    public String fingerprint() {
        return "own";
    }

    @Override
    public void close() {}

    private static Launch.Factor factor(Tensor tensor, int rows, boolean transposed) {
        return new Launch.Factor(tensor, rows, transposed, tensor.type() == DType.BF16);
    }

    private void run(DType multiply, Tensor c) {
        boolean halves = multiply == DType.BF16;
        int tile = halves ? HALF_TILE : FLOAT_TILE;
        launch.run(
                halves ? productOfHalves : productOfFloats,
                Math.ceilDiv(c.columns(), tile),
                Math.ceilDiv(c.rows(), tile),
                1,
                THREADS,
                0);
    }
}
