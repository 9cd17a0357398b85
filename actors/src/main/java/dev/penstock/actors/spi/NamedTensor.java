package dev.penstock.actors.spi;

import dev.penstock.cuda.device.Tensor;
import java.util.List;

/**
 * A tensor of a stage's state, or what a rank holds of it.
 *
 * @param name Hugging Face GPT-2 name of a parameter, or {@code optimizer.m.NAME} / {@code
 *     optimizer.v.NAME}
 * @param piece which elements of the whole these are
 * @param tensor dense, the elements of the piece
 */
public record NamedTensor(String name, TensorPiece piece, Tensor tensor) {

    /**
     * A whole tensor.
     *
     * @param shape dimensions as stored in a file; vectors have one
     */
    public NamedTensor(String name, List<Integer> shape, Tensor tensor) {
        this(name, TensorPiece.all(shape), tensor);
    }

    /** Dimensions of the whole. */
    public List<Integer> shape() {
        return piece.whole();
    }
}
