package dev.penstock.actors.spi;

import dev.penstock.cuda.device.Tensor;
import java.util.List;

/**
 * A tensor of a stage's state.
 *
 * @param name Hugging Face GPT-2 name of a parameter, or {@code optimizer.m.NAME} / {@code
 *     optimizer.v.NAME}
 * @param shape dimensions as stored in a file; vectors have one
 * @param tensor dense
 */
public record NamedTensor(String name, List<Integer> shape, Tensor tensor) {
    public NamedTensor {
        shape = List.copyOf(shape);
    }
}
