package dev.penstock.cuda.gpu;

import dev.penstock.cuda.device.AttentionShape;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.cuda.device.TokenRange;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.IdentityHashMap;
import jcuda.CudaException;
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
    private static final int SLOT_LONGS = SLOT_BYTES / Long.BYTES;

    /** Blocks along x, y and z, threads, bytes of shared memory. */
    private static final int DIMENSIONS = 5;

    private final GpuContext gpu;
    private final ByteBuffer values = newValues();
    private final Pointer slots = slots(values);
    private int next;

    /** Where work that was collected is taken apart; {@link #values} may be half filled then. */
    private final ByteBuffer collectedValues = newValues();

    private final Pointer collectedSlots = slots(collectedValues);
    private final IdentityHashMap<GpuModule.Function, KernelStart> starts = new IdentityHashMap<>();
    private final long[] numbers = new long[DIMENSIONS + SLOTS * SLOT_LONGS];

    Launch(GpuContext gpu) {
        this.gpu = gpu;
    }

    private static ByteBuffer newValues() {
        return ByteBuffer.allocateDirect(SLOTS * SLOT_BYTES).order(ByteOrder.nativeOrder());
    }

    /**
     * The addresses of all slots, themselves in off-heap memory: JCuda would translate an array of
     * pointers at every launch, which takes 20 times as long.
     */
    private static Pointer slots(ByteBuffer values) {
        long first = MemorySegment.ofBuffer(values).address();
        ByteBuffer each =
                ByteBuffer.allocateDirect(SLOTS * Long.BYTES).order(ByteOrder.nativeOrder());
        for (int i = 0; i < SLOTS; i++) {
            each.putLong(i * Long.BYTES, first + (long) i * SLOT_BYTES);
        }
        return Pointer.to(each);
    }

    /** Begins with the parameters of a kernel. */
    Launch begin() {
        next = 0;
        return this;
    }

    private int slot() {
        int at = SLOT_BYTES * next++;
        if (gpu.collects()) { // equal parameters are equal bytes
            for (int i = 0; i < SLOT_BYTES; i += Long.BYTES) {
                values.putLong(at + i, 0);
            }
        }
        return at;
    }

    /** A {@code View}: address and stride. */
    Launch view(Tensor tensor) {
        return view(GpuBuffer.addressOf(tensor, gpu), tensor.stride());
    }

    Launch view(long address, long stride) {
        int at = slot();
        values.putLong(at, address).putLong(at + 8, stride);
        return this;
    }

    /** A pointer to the elements of a dense tensor. */
    Launch vector(Tensor tensor) {
        return wide(address(tensor));
    }

    /** What kernels started here find the tensor's elements by. */
    long address(Tensor tensor) {
        return GpuBuffer.addressOf(tensor, gpu);
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
        values.putLong(at, GpuBuffer.addressOf(factor.tensor(), gpu));
        values.putLong(at + 8, factor.tensor().stride());
        values.putInt(at + 16, factor.rows()).putInt(at + 20, factor.transposed() ? 1 : 0);
        values.putInt(at + 24, factor.isBFloat16() ? 1 : 0);
        return this;
    }

    /** A {@code Span} of attention. */
    Launch span(GpuAttention.Span span, boolean goesOn) {
        int at = slot();
        values.putInt(at, span.queries()).putInt(at + 4, span.keys());
        values.putInt(at + 8, span.seenByFirst()).putInt(at + 12, span.firstSeenByFirst());
        values.putInt(at + 16, span.context()).putInt(at + 20, span.context());
        values.putInt(at + 24, span.queries());
        AttentionShape shape = span.shape();
        values.putInt(at + 28, shape.headSize()).putInt(at + 32, shape.heads());
        values.putInt(at + 36, shape.group()).putFloat(at + 40, (float) shape.scale());
        values.putInt(at + 44, goesOn ? 1 : 0);
        return this;
    }

    /** What the backward of attention has {@code Known} of each query. */
    Launch known(long dy, long strideOfDy, Tensor logSumExp, long deltas) {
        int at = slot();
        values.putLong(at, dy).putLong(at + 8, strideOfDy);
        values.putLong(at + 16, GpuBuffer.addressOf(logSumExp, gpu));
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
        if (gpu.collects()) {
            numbers[0] = blocksX;
            numbers[1] = blocksY;
            numbers[2] = blocksZ;
            numbers[3] = threads;
            numbers[4] = sharedBytes;
            values.asLongBuffer().get(0, numbers, DIMENSIONS, next * SLOT_LONGS);
            gpu.collect(
                    starts.computeIfAbsent(kernel, KernelStart::new),
                    numbers,
                    DIMENSIONS + next * SLOT_LONGS);
        } else {
            gpu.giving();
            start(kernel, blocksX, blocksY, blocksZ, threads, sharedBytes, slots);
            gpu.gave();
        }
    }

    private void start(
            GpuModule.Function kernel,
            int blocksX,
            int blocksY,
            int blocksZ,
            int threads,
            int sharedBytes,
            Pointer parameters) {
        try {
            gpu.bind();
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
                    parameters,
                    null);
        } catch (CudaException e) {
            throw GpuFailure.of(
                    "starting kernel %s on GPU %d".formatted(kernel.name(), gpu.index()), e);
        }
    }

    /** A kernel as it is collected: its dimensions, then its parameters slot by slot. */
    private final class KernelStart implements StreamWork {
        private final GpuModule.Function kernel;

        KernelStart(GpuModule.Function kernel) {
            this.kernel = kernel;
        }

        @Override
        public String name() {
            return kernel.name();
        }

        @Override
        public void give(long[] from, int at) {
            int parameters = Math.min(from.length - at - DIMENSIONS, SLOTS * SLOT_LONGS);
            collectedValues.asLongBuffer().put(0, from, at + DIMENSIONS, parameters);
            start(
                    kernel,
                    (int) from[at],
                    (int) from[at + 1],
                    (int) from[at + 2],
                    (int) from[at + 3],
                    (int) from[at + 4],
                    collectedSlots);
        }
    }

    /** A factor of a product, seen with the summed dimension last. */
    record Factor(Tensor tensor, int rows, boolean transposed, boolean isBFloat16) {}
}
