package dev.penstock.runtime.model.parameters;

import dev.penstock.actors.spi.TensorPiece;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceBuffer;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.kernels.BFloat16;
import dev.penstock.cuda.kernels.HostMatrix;
import dev.penstock.cuda.kernels.Int8;
import dev.penstock.runtime.model.memory.HostScope;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.function.Consumer;
import java.util.function.Predicate;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Where the host puts the values of parameters: in their own memory if it can address that,
 * otherwise in a room as large as the largest, from where they are copied.
 */
final class FillingRoom implements AutoCloseable {
    private @Nullable Arena arena;
    private MemorySegment room = MemorySegment.NULL;

    /**
     * Fills a dense tensor.
     *
     * @param piece what it holds; rows may follow that pad a table
     * @param filler is given memory for all elements in F32, of any content, and stores those of
     *     the piece or answers false; BF16 and F16 tensors get them rounded, those of moments coded
     * @return the filler's answer; if false, the tensor is what it was
     */
    boolean fill(Tensor tensor, TensorPiece piece, Predicate<MemorySegment> filler) {
        if (tensor.type() == DType.BF16 || tensor.type() == DType.F16) {
            return fillRounded(tensor, piece, filler);
        }
        if (tensor.type().isDynamic()) {
            return fillCoded(tensor, piece, filler);
        }
        if (tensor.buffer().isHostMemory()) {
            return filler.test(tensor.segment());
        }
        reserve(tensor.bytes());
        if (!filler.test(room.asSlice(0, tensor.bytes()))) {
            return false;
        }
        long bytes = piece.elements() * tensor.type().bytes();
        tensor.buffer().write(tensor.offsetBytes(), room.asSlice(0, bytes));
        return true;
    }

    private boolean fillRounded(Tensor tensor, TensorPiece piece, Predicate<MemorySegment> filler) {
        reserve(tensor.elements() * Float.BYTES);
        if (!filler.test(room.asSlice(0, tensor.elements() * Float.BYTES))) {
            return false;
        }
        // a half lies before the float that it is made of, or in its first half
        for (long i = 0; i < piece.elements(); i++) {
            float value = room.getAtIndex(ValueLayout.JAVA_FLOAT, i);
            short half =
                    tensor.type() == DType.F16
                            ? Float.floatToFloat16(value)
                            : BFloat16.fromFloat(value);
            room.setAtIndex(ValueLayout.JAVA_SHORT, i, half);
        }
        tensor.buffer().write(tensor.offsetBytes(), room.asSlice(0, 2 * piece.elements()));
        return true;
    }

    private boolean fillCoded(Tensor tensor, TensorPiece piece, Predicate<MemorySegment> filler) {
        long bytes = piece.elements() * Float.BYTES;
        reserve(bytes);
        if (!filler.test(room.asSlice(0, bytes))) {
            return false;
        }
        try (var codes = new HostScope("codes")) {
            long coded = (long) tensor.rows() * tensor.stride();
            DeviceBuffer here = codes.allocate("codes", coded);
            code(
                    new Tensor(
                            here,
                            0,
                            tensor.type(),
                            tensor.rows(),
                            tensor.columns(),
                            tensor.stride()),
                    piece);
            tensor.buffer().write(tensor.offsetBytes(), here.segment());
        }
        return true;
    }

    private void code(Tensor tensor, TensorPiece piece) {
        HostMatrix blocks = HostMatrix.of(tensor);
        IntStream.range(0, tensor.rows())
                .parallel()
                .forEach(
                        block -> {
                            float[] values = new float[tensor.columns()];
                            long at = (long) block * values.length;
                            int count = (int) Math.min(values.length, piece.elements() - at);
                            MemorySegment.copy(
                                    room,
                                    ValueLayout.JAVA_FLOAT,
                                    at * Float.BYTES,
                                    values,
                                    0,
                                    count);
                            blocks.setRow(block, values);
                        });
    }

    /**
     * Fills a tensor of I8.
     *
     * @param piece what it holds
     * @param rows the whole rows that the piece has parts of
     * @param filler stores all elements of these rows in F32
     */
    void fillScaled(
            Tensor tensor, TensorPiece piece, TensorPiece rows, Consumer<MemorySegment> filler) {
        reserve(rows.elements() * Float.BYTES);
        filler.accept(room.asSlice(0, rows.elements() * Float.BYTES));
        HostMatrix integers = HostMatrix.of(tensor);
        IntStream.range(0, tensor.rows())
                .parallel()
                .forEach(row -> scale(row, piece, tensor.columns(), integers));
    }

    /** Rounds a row of the room. */
    private void scale(int row, TensorPiece piece, int columns, HostMatrix integers) {
        float[] whole = new float[piece.whole().getLast()];
        long at = (long) row * whole.length * Float.BYTES;
        MemorySegment.copy(room, ValueLayout.JAVA_FLOAT, at, whole, 0, whole.length);
        float largest = 0;
        for (float value : whole) {
            largest = Math.max(largest, Math.abs(value));
        }
        float[] part = new float[columns];
        int to = 0;
        for (TensorPiece.Strip strip : piece.strips()) {
            System.arraycopy(whole, strip.firstColumn(), part, to, strip.columns());
            to += strip.columns();
        }
        integers.setScaledRow(row, part, Int8.scale(largest));
    }

    private void reserve(long bytes) {
        if (bytes > room.byteSize()) {
            close();
            Arena grown = Arena.ofShared(); // several threads fill it
            arena = grown;
            room = grown.allocate(bytes, Float.BYTES);
        }
    }

    @Override
    public void close() {
        if (arena != null) {
            arena.close();
        }
    }
}
