package dev.penstock.actors.collective;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Tensor;

/** A dense tensor as one row of elements. */
public final class FlatTensor {
    private FlatTensor() {}

    /** A stretch of it. */
    public static Tensor stretch(Tensor whole, long first, long count) {
        int columns = Math.toIntExact(count);
        return new Tensor(
                whole.buffer(),
                whole.offsetBytes() + first * whole.type().bytes(),
                whole.type(),
                1,
                columns,
                columns);
    }

    public static void checkPass(Tensor sent, Tensor received) {
        if (!sent.isDense()
                || !received.isDense()
                || sent.type() != received.type()
                || sent.elements() != received.elements()) {
            throw new IllegalArgumentException(
                    "pass: expected two dense tensors of the same type and size, got %s and %s"
                            .formatted(sent, received));
        }
    }

    public static void check(CollectiveKind kind, Tensor whole, ShardMap map, int members) {
        boolean summable = !kind.sums() || whole.type() == DType.F32 || whole.type() == DType.I64;
        if (!whole.isDense()
                || !summable
                || whole.elements() != map.elements()
                || map.parts() != members) {
            throw new IllegalArgumentException(
                    "%s: expected a dense tensor%s of %d elements in %d parts, got %s in %s"
                            .formatted(
                                    kind,
                                    kind.sums() ? " of F32 or I64" : "",
                                    map.elements(),
                                    members,
                                    whole,
                                    map));
        }
    }
}
