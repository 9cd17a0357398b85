package dev.penstock.runtime.model.activations;

import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.memory.Carver;
import dev.penstock.runtime.model.shape.ShardShape;

/**
 * The activations of a unit that the head keeps.
 *
 * @param normed input of the logits {@code [n', d]}, n' of {@link ShardShape#ownRows}
 */
public record HeadActivations(Tensor normed, RowMoments moments) {
    static HeadActivations carve(Carver carver, ShardShape shape, int rows) {
        return new HeadActivations(
                carver.factor(shape.kept(), shape.ownRows(rows), shape.width()),
                RowMoments.carve(carver, shape.model().block().norm(), shape.ownRows(rows)));
    }

    HeadActivations first(int own) {
        return new HeadActivations(normed.rows(0, own), moments.first(own));
    }
}
