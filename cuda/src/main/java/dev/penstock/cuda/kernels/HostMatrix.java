package dev.penstock.cuda.kernels;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Tensor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Access to a tensor in host memory, for code that need not be fast. By rows it is many times
 * faster than by elements, above all in a JVM that does not optimise, or not yet.
 */
public final class HostMatrix {
    private final MemorySegment memory;
    private final Tensor tensor;

    private HostMatrix(Tensor tensor) {
        this.memory = tensor.buffer().segment();
        this.tensor = tensor;
    }

    public static HostMatrix of(Tensor tensor) {
        return new HostMatrix(tensor);
    }

    public int rows() {
        return tensor.rows();
    }

    /** The element as a float; BF16 widens, I32 converts. */
    public float get(int row, int column) {
        long at = offset(row, column);
        return switch (tensor.type()) {
            case F32 -> memory.get(ValueLayout.JAVA_FLOAT, at);
            case BF16 -> BFloat16.toFloat(memory.get(ValueLayout.JAVA_SHORT, at));
            case I32 -> memory.get(ValueLayout.JAVA_INT, at);
        };
    }

    /** A copy of a row, as {@link #get} gives it. */
    public float[] row(int row) {
        float[] values = new float[tensor.columns()];
        if (tensor.type() == DType.F32) {
            MemorySegment.copy(
                    memory, ValueLayout.JAVA_FLOAT, offset(row, 0), values, 0, values.length);
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
            MemorySegment.copy(
                    values, 0, memory, ValueLayout.JAVA_FLOAT, offset(row, 0), values.length);
            return;
        }
        for (int column = 0; column < values.length; column++) {
            set(row, column, values[column]);
        }
    }

    public void setAllRows(float[][] rows) {
        for (int row = 0; row < rows.length; row++) {
            setRow(row, rows[row]);
        }
    }

    /** Stores a float; BF16 rounds to nearest even, I32 truncates. */
    public void set(int row, int column, float value) {
        long at = offset(row, column);
        switch (tensor.type()) {
            case F32 -> memory.set(ValueLayout.JAVA_FLOAT, at, value);
            case BF16 -> memory.set(ValueLayout.JAVA_SHORT, at, BFloat16.fromFloat(value));
            case I32 -> memory.set(ValueLayout.JAVA_INT, at, (int) value);
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
        return memory.get(ValueLayout.JAVA_INT, offset(row, column));
    }

    /** Stores an element of an I32 tensor. */
    public void setInt(int row, int column, int value) {
        if (tensor.type() != DType.I32) {
            throw new IllegalStateException("expected I32, got " + tensor);
        }
        memory.set(ValueLayout.JAVA_INT, offset(row, column), value);
    }

    private long offset(int row, int column) {
        return tensor.offsetBytes()
                + ((long) row * tensor.stride() + column) * tensor.type().bytes();
    }
}
