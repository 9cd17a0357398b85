package dev.penstock.runtime.model.parameters;

import dev.penstock.cuda.device.Tensor;

/** Parts of flat tensors. */
final class Stretches {
    private Stretches() {}

    /** Returns some elements of a dense row, as a row. */
    static Tensor of(Tensor row, long first, long count) {
        int columns = Math.toIntExact(count);
        return new Tensor(
                row.buffer(),
                row.offsetBytes() + first * row.type().bytes(),
                row.type(),
                1,
                columns,
                columns);
    }
}
