package dev.penstock.runtime.model.layers;

import static java.util.Objects.requireNonNull;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.DropoutMask;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.parameters.CounterRandom;
import dev.penstock.runtime.model.shape.ShardShape;
import org.jspecify.annotations.Nullable;

/**
 * Dropout of what enters the residual stream: the embeddings, and what each branch of a block is
 * about to add. Masks are computed again wherever they are needed, see {@link DropoutKeys}; columns
 * are never divided among ranks, and rows are those of {@link ShardShape#ownRows}. Not thread-safe.
 */
public final class StreamDropout {
    private final double probability;
    private final DropoutKeys keys;
    private final ShardShape shape;
    private final @Nullable Tensor room;

    private StreamDropout(
            double probability, DropoutKeys keys, ShardShape shape, @Nullable Tensor room) {
        this.probability = probability;
        this.keys = keys;
        this.shape = shape;
        this.room = room;
    }

    /**
     * Allocates room for the gradient of a branch of the largest unit, where a stage has blocks.
     *
     * @param rows of the largest unit
     */
    public static StreamDropout allocate(
            DeviceScope scratch,
            DropoutKeys keys,
            ShardShape shape,
            int rows,
            boolean blocks,
            double probability) {
        return new StreamDropout(
                probability,
                keys,
                shape,
                blocks
                        ? scratch.tensor(
                                "gradient of a branch before dropout",
                                DType.F32,
                                shape.ownRows(rows),
                                shape.width())
                        : null);
    }

    /**
     * Returns the mask of a place in the model.
     *
     * @param name of the place, which no other has
     */
    DropoutMask mask(String name) {
        return DropoutMask.scaled(CounterRandom.of(0, name).bits(0), 0, probability);
    }

    /** Returns whether anything is dropped in this step. */
    boolean isOn() {
        return keys.isOn();
    }

    /** Drops elements of a tensor of own rows, or of its gradient, in place. */
    void drop(Kernels kernels, Tensor x, DropoutMask mask) {
        Tensor unit = keys.ofUnit();
        if (unit != null) {
            kernels.dropout(x, own(unit), mask, x, false);
        }
    }

    /**
     * Returns the gradient of a branch before dropout, of own rows, valid until the next call; that
     * after dropout itself where nothing is dropped.
     */
    Tensor gradient(Kernels kernels, Tensor dy, DropoutMask mask) {
        Tensor unit = keys.ofUnit();
        if (unit == null) {
            return dy;
        }
        Tensor dx = requireNonNull(room).rows(0, dy.rows());
        kernels.dropout(dy, own(unit), mask, dx, false);
        return dx;
    }

    private Tensor own(Tensor unit) {
        return unit.rows(shape.firstOwnRow(unit.rows()), shape.ownRows(unit.rows()));
    }
}
