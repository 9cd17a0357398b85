package dev.penstock.runtime.model.activations;

import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.memory.Carver;
import dev.penstock.runtime.model.shape.ShardShape;
import org.jspecify.annotations.Nullable;

/**
 * The activations of a unit that the head keeps.
 *
 * @param normed output of the last norm {@code [n', d]}, n' of {@link ShardShape#ownRows}
 * @param transform of a layer of the head's own; null without one
 */
public record HeadActivations(
        Tensor normed, RowMoments moments, @Nullable TransformActivations transform) {
    static HeadActivations carve(Carver carver, ShardShape shape, int rows) {
        return new HeadActivations(
                carver.factor(shape.kept(), shape.ownRows(rows), shape.width()),
                RowMoments.carve(carver, shape.model().block().norm(), shape.ownRows(rows)),
                shape.model().block().encoder() == null
                        ? null
                        : TransformActivations.carve(carver, shape, rows));
    }

    /** Returns the input of the logits {@code [n', d]}. */
    public Tensor ofLogits() {
        return transform == null ? normed : transform.normed();
    }

    HeadActivations first(int own) {
        return new HeadActivations(
                normed.rows(0, own),
                moments.first(own),
                transform == null ? null : transform.first(own));
    }
}
