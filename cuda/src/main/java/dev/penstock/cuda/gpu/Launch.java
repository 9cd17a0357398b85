package dev.penstock.cuda.gpu;

import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.cuda.device.TokenRange;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import jcuda.CudaException;
import jcuda.NativePointerObject;
import jcuda.Pointer;
import jcuda.driver.JCudaDriver;

/**
 * Gives kernels their parameters and starts them. The driver copies parameters at the call, so one
 * block of off-heap memory serves every launch: a slot per parameter, filled in order. Used by one
 * thread at a time.
 */
final class Launch {
    private static final int SLOTS = 16;
    private static final int SLOT_BYTES = 64;

    private final GpuContext gpu;
    private final ByteBuffer values =
            ByteBuffer.allocateDirect(SLOTS * SLOT_BYTES).order(ByteOrder.nativeOrder());
    private final Pointer slots;
    private int next;

    Launch(GpuContext gpu) {
        this.gpu = gpu;
        NativePointerObject[] each = new NativePointerObject[SLOTS];
        for (int i = 0; i < SLOTS; i++) {
            each[i] = Pointer.to(values.slice(i * SLOT_BYTES, SLOT_BYTES));
        }
        slots = Pointer.to(each);
    }

    /** Begins with the parameters of a kernel. */
    Launch begin() {
        next = 0;
        return this;
    }

    private int slot() {
        return SLOT_BYTES * next++;
    }

    /** A {@code View}: address and stride. */
    Launch view(Tensor tensor) {
        return view(GpuBuffer.addressOf(tensor), tensor.stride());
    }

    Launch view(long address, long stride) {
        int at = slot();
        values.putLong(at, address).putLong(at + 8, stride);
        return this;
    }

    /** A pointer to the elements of a dense tensor. */
    Launch vector(Tensor tensor) {
        return wide(GpuBuffer.addressOf(tensor));
    }

    /** A pointer or another 64-bit number. */
    Launch wide(long value) {
        values.putLong(slot(), value);
        return this;
    }

    Launch integer(int value) {
        values.putInt(slot(), value);
        return this;
    }

    Launch number(float value) {
        values.putFloat(slot(), value);
        return this;
    }

    /** A structure of numbers. */
    Launch numbers(float... each) {
        int at = slot();
        for (int i = 0; i < each.length; i++) {
            values.putFloat(at + 4 * i, each[i]);
        }
        return this;
    }

    /** A {@code RowOrder}. */
    Launch order(TokenBlocks blocks) {
        return order(blocks.sequences(), blocks.tokens(), blocks.firstToken(), blocks.grid());
    }

    /** The {@code RowOrder} of rows as they come. */
    Launch anyOrder() {
        return order(0, 0, 0, 0);
    }

    private Launch order(int sequences, int tokens, int firstToken, int grid) {
        int at = slot();
        values.putInt(at, sequences).putInt(at + 4, tokens);
        values.putInt(at + 8, firstToken).putInt(at + 12, grid);
        return this;
    }

    /**
     * A {@code TokenRows}.
     *
     * @param count rows of the table, or columns of the logits
     */
    Launch range(TokenRange range, int count) {
        int at = slot();
        values.putInt(at, range.first()).putInt(at + 4, count);
        return this;
    }

    /** A {@code Factor} of a product. */
    Launch factor(Factor factor) {
        int at = slot();
        values.putLong(at, GpuBuffer.addressOf(factor.tensor()));
        values.putLong(at + 8, factor.tensor().stride());
        values.putInt(at + 16, factor.rows()).putInt(at + 20, factor.transposed() ? 1 : 0);
        values.putInt(at + 24, factor.isBFloat16() ? 1 : 0);
        return this;
    }

    /** A {@code Span} of attention. */
    Launch span(GpuAttention.Span span, boolean goesOn) {
        int at = slot();
        values.putInt(at, span.queries()).putInt(at + 4, span.keys());
        values.putInt(at + 8, span.seenByFirst());
        values.putInt(at + 12, span.context()).putInt(at + 16, span.context());
        values.putInt(at + 20, span.queries());
        values.putInt(at + 24, span.headWidth()).putInt(at + 28, span.heads());
        values.putFloat(at + 32, (float) (1 / Math.sqrt(span.headWidth())));
        values.putInt(at + 36, goesOn ? 1 : 0);
        return this;
    }

    /** What the backward of attention has {@code Known} of each query. */
    Launch known(Tensor dy, Tensor logSumExp, long deltas) {
        int at = slot();
        values.putLong(at, GpuBuffer.addressOf(dy)).putLong(at + 8, dy.stride());
        values.putLong(at + 16, GpuBuffer.addressOf(logSumExp));
        values.putLong(at + 24, logSumExp.stride());
        values.putLong(at + 32, deltas);
        return this;
    }

    /** Starts the kernel on one row of blocks. */
    void run(GpuModule.Function kernel, int blocks, int threads) {
        run(kernel, blocks, 1, 1, threads, 0);
    }

    /** Starts the kernel; returns at once. */
    void run(
            GpuModule.Function kernel,
            int blocksX,
            int blocksY,
            int blocksZ,
            int threads,
            int sharedBytes) {
        try {
            gpu.bind();
            gpu.giving();
            JCudaDriver.cuLaunchKernel(
                    kernel.handle(),
                    blocksX,
                    blocksY,
                    blocksZ,
                    threads,
                    1,
                    1,
                    sharedBytes,
                    gpu.stream(),
                    slots,
                    null);
        } catch (CudaException e) {
            throw GpuFailure.of(
                    "starting kernel %s on GPU %d".formatted(kernel.name(), gpu.index()), e);
        }
    }

    /** A factor of a product, seen with the summed dimension last. */
    record Factor(Tensor tensor, int rows, boolean transposed, boolean isBFloat16) {}
}
