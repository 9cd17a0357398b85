package dev.penstock.cuda.device;

import java.lang.foreign.MemorySegment;

/**
 * A row-major matrix in device memory: a view that owns nothing and costs nothing. Vectors are
 * matrices of one row. Views of views share the buffer.
 *
 * @param offsetBytes where element (0, 0) lies in the buffer
 * @param stride elements from one row to the next, at least {@code columns}
 */
public record Tensor(
        DeviceBuffer buffer, long offsetBytes, DType type, int rows, int columns, int stride) {
    public Tensor {
        if (rows < 0 || columns < 0 || stride < columns || offsetBytes < 0) {
            throw new IllegalArgumentException(
                    "tensor over %s: %d x %d with stride %d at byte %d is not a matrix"
                            .formatted(buffer.name(), rows, columns, stride, offsetBytes));
        }
        long end = rows == 0 ? 0 : ((rows - 1L) * stride + columns) * type.bytes();
        if (offsetBytes + end > buffer.bytes()) {
            throw new IllegalArgumentException(
                    "tensor over %s: %d x %d with stride %d at byte %d ends at byte %d of %d"
                            .formatted(
                                    buffer.name(),
                                    rows,
                                    columns,
                                    stride,
                                    offsetBytes,
                                    offsetBytes + end,
                                    buffer.bytes()));
        }
    }

    /** A dense matrix at the start of a buffer. */
    public static Tensor of(DeviceBuffer buffer, DType type, int rows, int columns) {
        return new Tensor(buffer, 0, type, rows, columns, columns);
    }

    /** Rows {@code [first, first + count)}. */
    public Tensor rows(int first, int count) {
        return new Tensor(
                buffer,
                offsetBytes + (long) first * stride * type.bytes(),
                type,
                count,
                columns,
                stride);
    }

    /** Columns {@code [first, first + count)}. */
    public Tensor columns(int first, int count) {
        return new Tensor(
                buffer, offsetBytes + (long) first * type.bytes(), type, rows, count, stride);
    }

    /** Address of element (0, 0); throws {@link DeviceException} if the buffer was freed. */
    public long address() {
        return buffer.address() + offsetBytes;
    }

    /** Number of elements. */
    public long elements() {
        return (long) rows * columns;
    }

    /** Whether rows follow each other without gaps. */
    public boolean isDense() {
        return stride == columns || rows <= 1;
    }

    /** Bytes of the elements, without gaps. */
    public long bytes() {
        return elements() * type.bytes();
    }

    /** The elements as host memory; only for dense tensors on devices that the host can address. */
    public MemorySegment segment() {
        if (!isDense()) {
            throw new IllegalStateException("a tensor with gaps has no segment: " + this);
        }
        return buffer.segment().asSlice(offsetBytes, bytes());
    }

    /**
     * The elements as {@link DeviceBuffer#contents} gives them; row {@code r} begins at element
     * {@code r * stride}.
     */
    public MemorySegment contents() {
        long elements = rows == 0 ? 0 : (rows - 1L) * stride + columns;
        return buffer.contents(offsetBytes, elements * type.bytes());
    }

    /** Stores all elements, see {@link DeviceBuffer#write}; only for dense tensors. */
    public void write(MemorySegment source) {
        checkSize(source);
        buffer.write(offsetBytes, source);
    }

    /** Stores all elements, see {@link DeviceBuffer#writeIndices}; only for dense tensors. */
    public void writeIndices(MemorySegment source) {
        checkSize(source);
        buffer.writeIndices(offsetBytes, source);
    }

    private void checkSize(MemorySegment source) {
        if (!isDense() || source.byteSize() != bytes()) {
            throw new IllegalArgumentException(
                    "storing %,d bytes: expected a dense tensor of as many, got %s"
                            .formatted(source.byteSize(), this));
        }
    }

    /** The elements in the buffer's {@link DeviceBuffer#staging}; only for dense tensors. */
    public MemorySegment staging() {
        if (!isDense()) {
            throw new IllegalStateException("a tensor with gaps has no segment: " + this);
        }
        return buffer.staging().asSlice(offsetBytes, bytes());
    }
}
