package dev.penstock.runtime.model.memory;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceBuffer;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Tensor;
import java.util.function.Function;

/** Cuts one buffer into dense F32 tensors, each at the start of a 64-byte line. */
public final class Carver {
    private static final int LINE_BYTES = 64;

    private final DeviceBuffer buffer;
    private long usedBytes;

    private Carver(DeviceBuffer buffer) {
        this.buffer = buffer;
    }

    /**
     * Allocates a buffer that is just large enough for what {@code cut} takes, and cuts it.
     *
     * @param cut called twice, first over a buffer without memory to determine the size
     */
    public static <T> T carve(DeviceScope scope, String name, Function<Carver, T> cut) {
        Carver measure = new Carver(new CountingScope.CountedBuffer(name, Long.MAX_VALUE));
        T _ = cut.apply(measure);
        return cut.apply(new Carver(scope.allocate(name, Math.max(LINE_BYTES, measure.usedBytes))));
    }

    public Tensor matrix(int rows, int columns) {
        Tensor t = new Tensor(buffer, usedBytes, DType.F32, rows, columns, columns);
        usedBytes += (t.bytes() + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
        return t;
    }
}
