package dev.penstock.runtime.model.memory;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceBuffer;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;

/** Cuts one buffer into tensors, each at the start of a 64-byte line. */
public final class Carver {
    private static final int LINE_BYTES = 64;

    /** Of 16 bytes. */
    private static final int HALVES = 8;

    private final DeviceBuffer buffer;
    private long usedBytes;

    private Carver(DeviceBuffer buffer, long usedBytes) {
        this.buffer = buffer;
        this.usedBytes = usedBytes;
    }

    /**
     * Allocates a buffer that is just large enough for what {@code cut} takes, and cuts it.
     *
     * @param cut called twice, first over a buffer without memory to determine the size
     */
    public static <T> T carve(DeviceScope scope, String name, Function<Carver, T> cut) {
        long lines = bytes(cut) / LINE_BYTES;
        long across = lines / Integer.MAX_VALUE + 1; // above 1 only where it is counted, not had
        Tensor room =
                scope.tensor(
                        name,
                        DType.F32,
                        Math.toIntExact(Math.ceilDiv(lines, across)),
                        Math.toIntExact(across * LINE_BYTES / DType.F32.bytes()));
        return cut.apply(new Carver(room.buffer(), room.offsetBytes()));
    }

    /** Returns the bytes of a buffer that is just large enough for what {@code cut} takes. */
    public static long bytes(Function<Carver, ?> cut) {
        var measure = new Carver(new CountingScope.CountedBuffer("measure", Long.MAX_VALUE), 0);
        Object _ = cut.apply(measure);
        return Math.max(LINE_BYTES, measure.usedBytes);
    }

    /** Cuts a buffer of at least {@link #bytes}. */
    public static <T> T cut(DeviceBuffer buffer, Function<Carver, T> cut) {
        return cut.apply(new Carver(buffer, 0));
    }

    /** Cuts memory that is used in one of several ways at a time; it is as large as the largest. */
    public <T> List<T> alternatives(List<Function<Carver, T>> cuts) {
        List<T> ways = new ArrayList<>();
        long first = usedBytes;
        long end = first;
        for (Function<Carver, T> cut : cuts) {
            usedBytes = first;
            ways.add(cut.apply(this));
            end = Math.max(end, usedBytes);
        }
        usedBytes = end;
        return ways;
    }

    /** Cuts a dense F32 matrix. */
    public Tensor matrix(int rows, int columns) {
        return cut(new Tensor(buffer, usedBytes, DType.F32, rows, columns, columns));
    }

    /**
     * Cuts a matrix that products read. One of BF16 has rows that begin at 16 bytes: else products
     * of a GPU are far slower.
     */
    public Tensor factor(DType type, int rows, int columns) {
        return type == DType.BF16
                ? cut(new Tensor(buffer, usedBytes, type, rows, columns, halfStride(columns)))
                : matrix(rows, columns);
    }

    /** Returns a matrix that products read, of fewer columns in the memory of a wider one. */
    public static Tensor factorIn(Tensor wide, int columns) {
        int stride = wide.type() == DType.BF16 ? halfStride(columns) : columns;
        return new Tensor(
                wide.buffer(), wide.offsetBytes(), wide.type(), wide.rows(), columns, stride);
    }

    /** Returns the elements from row to row of a BF16 matrix whose rows begin at 16 bytes. */
    public static int halfStride(int columns) {
        return (columns + HALVES - 1) / HALVES * HALVES;
    }

    private Tensor cut(Tensor tensor) {
        long bytes = (long) tensor.rows() * tensor.stride() * tensor.type().bytes();
        usedBytes += (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
        return tensor;
    }
}
