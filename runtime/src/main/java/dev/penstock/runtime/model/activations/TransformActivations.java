package dev.penstock.runtime.model.activations;

import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.memory.Carver;
import dev.penstock.runtime.model.shape.ShardShape;

/**
 * The activations of a unit that a head with a layer of its own keeps, all {@code [n', d]}, n' of
 * {@link ShardShape#ownRows}.
 *
 * @param hidden before the activation; in a head that classifies the same as {@code activated}
 * @param activated input of the norm
 * @param normed input of the logits
 */
public record TransformActivations(
        Tensor hidden, Tensor activated, Tensor normed, RowMoments moments) {
    static TransformActivations carve(Carver carver, ShardShape shape, int rows) {
        int own = shape.ownRows(rows);
        int width = shape.width();
        Tensor activated = carver.matrix(own, width);
        return new TransformActivations(
                shape.model().classifies() ? activated : carver.matrix(own, width),
                activated,
                carver.factor(shape.kept(), own, width),
                RowMoments.carve(carver, shape.model().block().norm(), own));
    }

    TransformActivations first(int own) {
        return new TransformActivations(
                hidden.rows(0, own),
                activated.rows(0, own),
                normed.rows(0, own),
                moments.first(own));
    }
}
