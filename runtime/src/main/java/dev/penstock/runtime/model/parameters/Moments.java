package dev.penstock.runtime.model.parameters;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.kernels.Dynamic8;
import dev.penstock.runtime.model.shape.OptimizerState;

/**
 * Both moments of the elements that a rank holds of a group.
 *
 * @param m dense row: of F32, or of the bytes of coded blocks, as {@code v}
 */
record Moments(Tensor m, Tensor v, OptimizerState form) {
    static Moments allocate(DeviceScope scope, String name, long count, OptimizerState form) {
        return new Moments(
                row(scope, "optimizer.m." + name, count, form),
                row(scope, "optimizer.v." + name, count, form),
                form);
    }

    private static Tensor row(DeviceScope scope, String name, long count, OptimizerState form) {
        DType type = form == OptimizerState.INT8 ? DType.I8 : DType.F32;
        return ParameterGroup.row(scope, name, type, form.bytes(count) / type.bytes());
    }

    /**
     * Returns the first moments of some elements, for kernels.
     *
     * @param from where a parameter's elements begin, or a block of them
     */
    Tensor first(long from, long count) {
        return elements(m, DType.DYNAMIC8, from, count);
    }

    /** Returns the second moments. */
    Tensor second(long from, long count) {
        return elements(v, DType.DYNAMIC8_POSITIVE, from, count);
    }

    private Tensor elements(Tensor row, DType coded, long from, long count) {
        if (form == OptimizerState.FLOAT32) {
            return Stretches.of(row, from, count);
        }
        return new Tensor(
                row.buffer(),
                row.offsetBytes() + form.bytes(from),
                coded,
                Math.toIntExact(Math.ceilDiv(count, (long) Dynamic8.BLOCK)),
                Dynamic8.BLOCK,
                coded.rowStride(Dynamic8.BLOCK));
    }

    /** Returns a row whose bits are those of moments, for what moves bits and reads no numbers. */
    static Tensor bits(Tensor moments) {
        if (moments.type() == DType.F32) {
            return moments;
        }
        long bytes =
                moments.type().isDynamic()
                        ? (long) moments.rows() * moments.stride()
                        : moments.bytes();
        int words = Math.toIntExact(bytes / DType.F32.bytes());
        return new Tensor(moments.buffer(), moments.offsetBytes(), DType.F32, 1, words, words);
    }
}
