package dev.penstock.cuda.kernels;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Tensor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Access to a tensor by the host, for code that need not be fast. By rows it is many times faster
 * than by elements, above all in a JVM that does not optimise, or not yet.
 *
 * <p>Of memory that the host cannot address, rows are copied when they are asked for; the last one
 * is kept, so after kernels wrote there take a new matrix.
 */
public final class HostMatrix {
    private final Tensor tensor;
    private final int bytes;

    /** All of the buffer, or the row that was asked for last. */
    private MemorySegment memory = MemorySegment.NULL;

    /** The row that is in memory; negative if none, or all, are. */
    private int kept = -1;

    private final boolean isHere;

    private HostMatrix(Tensor tensor) {
        this.tensor = tensor;
        this.bytes = tensor.type().bytes();
        this.isHere = tensor.buffer().isHostMemory();
        if (isHere) {
            memory = tensor.buffer().segment();
        }
    }

    public static HostMatrix of(Tensor tensor) {
        return new HostMatrix(tensor);
    }

    public int rows() {
        return tensor.rows();
    }

    /** The element as a float; BF16 and F16 widen, I32 and I64 convert, the others are scaled. */
    public float get(int row, int column) {
        long at = toRead(row, column);
        return switch (tensor.type()) {
            case F32 -> memory.get(ValueLayout.JAVA_FLOAT, at);
            case BF16 -> BFloat16.toFloat(memory.get(ValueLayout.JAVA_SHORT, at));
            case F16 -> Float.float16ToFloat(memory.get(ValueLayout.JAVA_SHORT, at));
            case I32 -> memory.get(ValueLayout.JAVA_INT, at);
            case I64 -> memory.get(ValueLayout.JAVA_LONG, at);
            case I8 ->
                    memory.get(ValueLayout.JAVA_BYTE, at)
                            * memory.get(ValueLayout.JAVA_FLOAT, at + scaleFrom(column));
            case DYNAMIC8, DYNAMIC8_POSITIVE ->
                    Dynamic8.of(tensor.type()).value(memory.get(ValueLayout.JAVA_BYTE, at))
                            * memory.get(ValueLayout.JAVA_FLOAT, at + scaleFrom(column));
        };
    }

    /** A copy of a row, as {@link #get} gives it. */
    public float[] row(int row) {
        float[] values = new float[tensor.columns()];
        if (tensor.type() == DType.F32) {
            long at = toRead(row, 0); // before its memory is taken: that may be another then
            MemorySegment.copy(memory, ValueLayout.JAVA_FLOAT, at, values, 0, values.length);
            return values;
        }
        for (int column = 0; column < values.length; column++) {
            values[column] = get(row, column);
        }
        return values;
    }

    /** Copies of all rows. */
    public float[][] allRows() {
        float[][] rows = new float[tensor.rows()][];
        for (int row = 0; row < rows.length; row++) {
            rows[row] = row(row);
        }
        return rows;
    }

    /** Stores a row, as {@link #set} does. */
    public void setRow(int row, float[] values) {
        if (tensor.type() == DType.F32) {
            MemorySegment source = MemorySegment.ofArray(values);
            if (isHere) {
                MemorySegment.copy(source, 0, memory, offset(row, 0), source.byteSize());
            } else {
                kept = -1;
                tensor.rows(row, 1).write(source);
            }
            return;
        }
        if (tensor.type() == DType.I8) {
            setScaledRow(row, values);
            return;
        }
        if (tensor.type().isDynamic()) {
            setCodes(row, values);
            return;
        }
        for (int column = 0; column < values.length; column++) {
            set(row, column, values[column]);
        }
    }

    private void setScaledRow(int row, float[] values) {
        float largest = 0;
        for (float value : values) {
            largest = Math.max(largest, Math.abs(value));
        }
        setScaledRow(row, values, Int8.scale(largest));
    }

    /** Stores a row of I8, or a part of one whose scale is that of the whole. */
    public void setScaledRow(int row, float[] values, float scale) {
        long at = offset(row, 0);
        for (int column = 0; column < values.length; column++) {
            memory.set(ValueLayout.JAVA_BYTE, at + column, Int8.of(values[column], scale));
        }
        memory.set(ValueLayout.JAVA_FLOAT, at + scaleFrom(0), scale);
    }

    private void setCodes(int row, float[] values) {
        float least = 0;
        float largest = 0;
        for (float value : values) {
            least = Math.min(least, value);
            largest = Math.max(largest, value);
        }
        float scale = Dynamic8.scale(least, largest);
        Dynamic8 codes = Dynamic8.of(tensor.type());
        long at = offset(row, 0);
        for (int column = 0; column < values.length; column++) {
            byte code = scale == 0 ? 0 : codes.code(values[column] / scale);
            memory.set(ValueLayout.JAVA_BYTE, at + column, code);
        }
        memory.set(ValueLayout.JAVA_FLOAT, at + scaleFrom(0), scale);
    }

    /** Bytes from an element of a scaled row to the row's scale. */
    private int scaleFrom(int column) {
        return tensor.stride() - Float.BYTES - column;
    }

    public void setAllRows(float[][] rows) {
        for (int row = 0; row < rows.length; row++) {
            setRow(row, rows[row]);
        }
    }

    /** Stores a float; BF16 and F16 round to nearest even, I32 and I64 truncate. */
    public void set(int row, int column, float value) {
        MemorySegment target = isHere ? memory : MemorySegment.ofArray(new long[1]);
        long at = isHere ? offset(row, column) : 0;
        switch (tensor.type()) {
            case F32 -> target.set(ValueLayout.JAVA_FLOAT, at, value);
            case BF16 -> target.set(ValueLayout.JAVA_SHORT, at, BFloat16.fromFloat(value));
            case F16 -> target.set(ValueLayout.JAVA_SHORT, at, Float.floatToFloat16(value));
            case I32 -> target.set(ValueLayout.JAVA_INT, at, (int) value);
            case I64 -> target.set(ValueLayout.JAVA_LONG, at, (long) value);
            case I8, DYNAMIC8, DYNAMIC8_POSITIVE ->
                    throw new IllegalStateException("expected a whole row for " + tensor);
        }
        if (!isHere) {
            kept = -1;
            tensor.buffer().write(offset(row, column), target.asSlice(0, bytes));
        }
    }

    public void add(int row, int column, float value) {
        set(row, column, get(row, column) + value);
    }

    /** An element of an I32 tensor. */
    public int getInt(int row, int column) {
        if (tensor.type() != DType.I32) {
            throw new IllegalStateException("expected I32, got " + tensor);
        }
        long at = toRead(row, column);
        return memory.get(ValueLayout.JAVA_INT, at);
    }

    /** Stores an element of an I32 tensor, for kernels to index by. */
    public void setInt(int row, int column, int value) {
        if (tensor.type() != DType.I32) {
            throw new IllegalStateException("expected I32, got " + tensor);
        }
        kept = isHere ? kept : -1;
        MemorySegment source = MemorySegment.ofArray(new int[] {value});
        tensor.buffer().writeIndices(offset(row, column), source);
    }

    /** A copy of a row of an I64 tensor. */
    public long[] longs(int row) {
        requireLongs();
        long at = toRead(row, 0);
        return memory.asSlice(at, (long) tensor.columns() * bytes).toArray(ValueLayout.JAVA_LONG);
    }

    /** Stores a row of an I64 tensor. */
    public void setLongs(int row, long[] values) {
        requireLongs();
        kept = isHere ? kept : -1;
        tensor.rows(row, 1).write(MemorySegment.ofArray(values));
    }

    private void requireLongs() {
        if (tensor.type() != DType.I64) {
            throw new IllegalStateException("expected I64, got " + tensor);
        }
    }

    private long offset(int row, int column) {
        return tensor.offsetBytes() + ((long) row * tensor.stride() + column) * bytes;
    }

    /** Where an element is in memory. */
    private long toRead(int row, int column) {
        if (isHere) {
            return offset(row, column);
        }
        if (kept != row) {
            int rowBytes = tensor.type().isScaled() ? tensor.stride() : tensor.columns() * bytes;
            memory = tensor.buffer().contents(offset(row, 0), rowBytes);
            kept = row;
        }
        return (long) column * bytes;
    }
}
