package dev.penstock.cuda.kernels;

import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.Tensor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Guards every table that is indexed by data: a wrong token must not read foreign memory. */
public final class IndexRules {
    private IndexRules() {}

    /**
     * Checks that all elements of an I32 vector in host memory lie in {@code [0, limit)}.
     *
     * @throws DeviceException naming the op, the first bad element and its place
     */
    public static void inRange(String op, String name, Tensor indices, int limit) {
        inRange(op, name, indices, indices.segment(), limit);
    }

    /**
     * Same as {@link #inRange(String, String, Tensor, int)}.
     *
     * @param memory the indices as the host sees them
     */
    public static void inRange(
            String op, String name, Tensor indices, MemorySegment memory, int limit) {
        for (int i = 0; i < indices.columns(); i++) {
            int index = memory.get(ValueLayout.JAVA_INT, 4L * i);
            if (index < 0 || index >= limit) {
                throw new DeviceException(
                        "%s: expected %s of 0 to %d, got %d at row %d"
                                .formatted(op, name, limit - 1, index, i));
            }
        }
    }
}
