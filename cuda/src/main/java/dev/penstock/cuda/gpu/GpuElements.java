package dev.penstock.cuda.gpu;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DropoutMask;
import dev.penstock.cuda.device.Gelu;
import dev.penstock.cuda.device.Tensor;
import jcuda.CudaException;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.JCudaDriver;

/** The kernels of {@code elements.cu}. */
final class GpuElements {
    private static final int THREADS = 256;
    private static final int DOTS_THREADS = 128;

    /** Elements of each thread: four loads of four. */
    private static final int PER_THREAD = 16;

    private static final int MOST_BLOCKS_DOWN = 65535;
    private static final int MOST_BLOCKS = 1 << 16;

    private static final CUdeviceptr NOWHERE = new CUdeviceptr();

    private final GpuContext gpu;
    private final Zeroing zeroing = new Zeroing();
    private final Launch launch;
    private final GpuModule.Function addBias;
    private final GpuModule.Function addBiasRounded;
    private final GpuModule.Function addBiasAndResidual;
    private final GpuModule.Function biasGelu;
    private final GpuModule.Function geluBackward;
    private final GpuModule.Function biasExactGelu;
    private final GpuModule.Function exactGeluBackward;
    private final GpuModule.Function geluRounded;
    private final GpuModule.Function exactGeluRounded;
    private final GpuModule.Function swiGlu;
    private final GpuModule.Function swiGluRounded;
    private final GpuModule.Function swiGluBackward;
    private final GpuModule.Function swiGluBackwardRounded;
    private final GpuModule.Function dropout;
    private final GpuModule.Function dropoutOfHalves;
    private final GpuModule.Function rotate;
    private final GpuModule.Function add;
    private final GpuModule.Function addLongs;
    private final GpuModule.Function unfoldGradient;
    private final GpuModule.Function subtract;
    private final GpuModule.Function blend;
    private final GpuModule.Function copyWords;
    private final GpuModule.Function copyHalves;
    private final GpuModule.Function narrow;
    private final GpuModule.Function widen;
    private final GpuModule.Function dotsOfHalves;
    private final GpuModule.Function dotsOfHalvesRounded;
    private final GpuModule.Function columnDotsOfHalves;

    GpuElements(GpuContext gpu, GpuModule module, Launch launch) {
        this.gpu = gpu;
        this.launch = launch;
        addBias = module.function("addBias");
        addBiasRounded = module.function("addBiasRounded");
        addBiasAndResidual = module.function("addBiasAndResidual");
        biasGelu = module.function("biasGelu");
        geluBackward = module.function("geluBackward");
        biasExactGelu = module.function("biasExactGelu");
        exactGeluBackward = module.function("exactGeluBackward");
        geluRounded = module.function("geluRounded");
        exactGeluRounded = module.function("exactGeluRounded");
        swiGlu = module.function("swiGlu");
        swiGluRounded = module.function("swiGluRounded");
        swiGluBackward = module.function("swiGluBackward");
        swiGluBackwardRounded = module.function("swiGluBackwardRounded");
        dropout = module.function("dropout");
        dropoutOfHalves = module.function("dropoutOfHalves");
        rotate = module.function("rotate");
        add = module.function("add");
        addLongs = module.function("addLongs");
        unfoldGradient = module.function("unfoldGradient");
        subtract = module.function("subtract");
        blend = module.function("blend");
        copyWords = module.function("copyWords");
        copyHalves = module.function("copyHalves");
        narrow = module.function("narrow");
        widen = module.function("widen");
        dotsOfHalves = module.function("dotsOfHalves");
        dotsOfHalvesRounded = module.function("dotsOfHalvesRounded");
        columnDotsOfHalves = module.function("columnDotsOfHalves");
    }

    void addBias(Tensor y, Tensor bias) {
        launch.begin().view(y).vector(bias).integer(y.rows()).integer(y.columns());
        overMatrix(addBias, y.rows(), y.columns());
    }

    void addBiasRounded(Tensor y, Tensor bias, Tensor rounded) {
        launch.begin().view(y).vector(bias).view(rounded).integer(y.rows()).integer(y.columns());
        overMatrix(addBiasRounded, y.rows(), y.columns());
    }

    void addBiasAndResidual(Tensor y, Tensor bias, Tensor residual) {
        launch.begin().view(y).vector(bias).view(residual);
        launch.integer(y.rows()).integer(y.columns());
        overMatrix(addBiasAndResidual, y.rows(), y.columns());
    }

    void biasGelu(Tensor pre, Tensor bias, Tensor y, Gelu form) {
        launch.begin().view(pre).vector(bias).view(y).integer(y.rows()).integer(y.columns());
        overMatrix(
                switch (form) {
                    case TANH -> biasGelu;
                    case EXACT -> biasExactGelu;
                },
                y.rows(),
                y.columns());
    }

    void geluBackward(Tensor pre, Tensor dy, Gelu form) {
        both(
                switch (form) {
                    case TANH -> geluBackward;
                    case EXACT -> exactGeluBackward;
                },
                pre,
                dy);
    }

    void geluRounded(Tensor pre, Tensor bias, Tensor y, Gelu form) {
        launch.begin().view(pre).vector(bias).view(y).integer(y.rows()).integer(y.columns());
        overMatrix(
                switch (form) {
                    case TANH -> geluRounded;
                    case EXACT -> exactGeluRounded;
                },
                y.rows(),
                y.columns());
    }

    void swiGlu(Tensor gated, Tensor z) {
        launch.begin().view(gated).view(z).integer(z.rows()).integer(z.columns());
        overMatrix(z.type() == DType.BF16 ? swiGluRounded : swiGlu, z.rows(), z.columns());
    }

    void swiGluBackward(Tensor gated, Tensor dz, Tensor dGated) {
        launch.begin().view(gated).view(dz).view(dGated);
        launch.integer(dz.rows()).integer(dz.columns());
        overMatrix(
                dGated.type() == DType.BF16 ? swiGluBackwardRounded : swiGluBackward,
                dz.rows(),
                dz.columns());
    }

    void dropout(Tensor x, Tensor rowKeys, DropoutMask mask, Tensor y, boolean accumulate) {
        launch.begin().view(x).vector(rowKeys).wide(mask.site()).integer(mask.firstColumn());
        launch.integer((int) mask.threshold()).number(mask.scale()).integer(accumulate ? 1 : 0);
        launch.view(y).integer(x.rows()).integer(x.columns());
        overMatrix(x.type() == DType.BF16 ? dropoutOfHalves : dropout, x.rows(), x.columns());
    }

    void rotate(Tensor x, Tensor turns, boolean back) {
        int pairs = x.columns() / 2;
        launch.begin().view(x).view(turns).integer(turns.rows()).integer(turns.columns() / 2);
        launch.number(back ? -1 : 1).integer(x.rows()).integer(pairs);
        overMatrix(rotate, x.rows(), pairs);
    }

    void add(Tensor x, Tensor y) {
        both(x.type() == DType.I64 ? addLongs : add, x, y);
    }

    void unfoldGradient(Tensor sum, Tensor gradient) {
        both(unfoldGradient, sum, gradient);
    }

    void subtract(Tensor x, Tensor y) {
        both(subtract, x, y);
    }

    void blend(float a, Tensor x, float b, Tensor y) {
        launch.begin().number(a).view(x).number(b).view(y).integer(y.rows()).integer(y.columns());
        overMatrix(blend, y.rows(), y.columns());
    }

    void copy(Tensor x, Tensor y) {
        if (x.type() == DType.I64) {
            both(copyWords, words(x), words(y));
            return;
        }
        GpuModule.Function kernel;
        if (x.type() == y.type()) {
            kernel = x.type() == DType.BF16 ? copyHalves : copyWords;
        } else {
            kernel = x.type() == DType.F32 ? narrow : widen;
        }
        both(kernel, x, y);
    }

    /** The halves of 64-bit integers. */
    private static Tensor words(Tensor longs) {
        return new Tensor(
                longs.buffer(),
                longs.offsetBytes(),
                DType.I32,
                longs.rows(),
                2 * longs.columns(),
                2 * longs.stride());
    }

    /**
     * Rounds an F32 matrix to bf16 in memory that is no tensor's.
     *
     * @param stride elements from row to row there
     */
    void narrow(Tensor x, long to, int stride) {
        launch.begin().view(x).view(to, stride).integer(x.rows()).integer(x.columns());
        overMatrix(narrow, x.rows(), x.columns());
    }

    /**
     * Products of rows of bf16 in memory that need be no tensor's: {@code c[i, j] = a[i] . b[j]},
     * or added to what is there. The bits of a row do not depend on how many there are.
     *
     * @param m rows of a
     * @param n rows of b, a few
     * @param k columns of both
     */
    void dots(
            CublasProducts.Operand a,
            CublasProducts.Operand b,
            CublasProducts.Operand c,
            DType result,
            int m,
            int n,
            int k,
            boolean accumulate) {
        launch.begin().view(a.address(), a.stride()).view(b.address(), b.stride());
        launch.view(c.address(), c.stride()).integer(m).integer(n).integer(k);
        launch.integer(accumulate ? 1 : 0);
        launch.run(
                result == DType.BF16 ? dotsOfHalvesRounded : dotsOfHalves,
                Math.ceilDiv(m, DOTS_THREADS / 32),
                DOTS_THREADS);
    }

    /**
     * Products of columns of bf16: {@code c[i, j] = (column i of a) . (column j of b)}, or added to
     * what is there.
     *
     * @param m columns of a, a few
     * @param n columns of b
     * @param k rows of both
     */
    void columnDots(
            CublasProducts.Operand a,
            CublasProducts.Operand b,
            CublasProducts.Operand c,
            int m,
            int n,
            int k,
            boolean accumulate) {
        launch.begin().view(a.address(), a.stride()).view(b.address(), b.stride());
        launch.view(c.address(), c.stride()).integer(m).integer(n).integer(k);
        launch.integer(accumulate ? 1 : 0);
        launch.run(columnDotsOfHalves, Math.ceilDiv(n, 32), 32 * 32);
    }

    /** Of two tensors of one shape; without gaps they are one long row. */
    private void both(GpuModule.Function kernel, Tensor x, Tensor y) {
        boolean flat = x.isDense() && y.isDense() && x.elements() <= Integer.MAX_VALUE;
        int rows = flat ? 1 : x.rows();
        int columns = flat ? (int) x.elements() : x.columns();
        launch.begin().view(x).view(y).integer(rows).integer(columns);
        overMatrix(kernel, rows, columns);
    }

    private void overMatrix(GpuModule.Function kernel, int rows, int columns) {
        int wanted = Math.ceilDiv(columns, PER_THREAD);
        int threads = Math.clamp(Math.ceilDiv(wanted, 32) * 32L, 32, THREADS);
        int along = Math.clamp(Math.ceilDiv(wanted, threads), 1, MOST_BLOCKS);
        if (rows > 0 && columns > 0) {
            launch.run(kernel, along, Math.min(rows, MOST_BLOCKS_DOWN), 1, threads, 0);
        }
    }

    void zero(Tensor x) {
        long rowBytes = (long) x.columns() * x.type().bytes();
        if (x.rows() == 0 || rowBytes == 0) {
            return;
        }
        boolean dense = x.isDense();
        long pitch = (long) x.stride() * x.type().bytes();
        long width = dense ? rowBytes * x.rows() : rowBytes;
        long[] numbers = {
            GpuBuffer.addressOf(x, gpu), Math.max(pitch, width), width, dense ? 1 : x.rows()
        };
        if (gpu.collects()) {
            gpu.collect(zeroing, numbers, numbers.length);
        } else {
            gpu.giving();
            zeroing.give(numbers, 0);
            gpu.gave();
        }
    }

    /** Of an address, bytes from row to row, bytes of a row, rows. */
    private final class Zeroing implements StreamWork {
        @Override
        public String name() {
            return "zero";
        }

        @Override
        public void give(long[] numbers, int from) {
            try {
                gpu.bind();
                JCudaDriver.cuMemsetD2D8Async(
                        NOWHERE.withByteOffset(numbers[from]),
                        numbers[from + 1],
                        (byte) 0,
                        numbers[from + 2],
                        numbers[from + 3],
                        gpu.stream());
            } catch (CudaException e) {
                throw GpuFailure.of("zeroing on GPU " + gpu.index(), e);
            }
        }
    }
}
