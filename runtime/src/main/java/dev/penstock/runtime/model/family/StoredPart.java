package dev.penstock.runtime.model.family;

import java.util.List;

/**
 * A tensor of a published model and its place in a parameter. Penstock keeps matrices as {@code
 * [in, out]} and those that read the same input side by side; others keep each apart, and often as
 * {@code [out, in]}:
 *
 * <pre>
 *   q_proj [hk, d]   k_proj [gk, d]   v_proj [gk, d]       c_attn  d x | q | k | v |
 * </pre>
 *
 * @param name as published
 * @param parameter of Penstock
 * @param shape of the tensor as published
 * @param firstColumn of the parameter, for which the tensor's first output stands
 * @param transposed whether rows of the tensor are columns of the parameter
 */
public record StoredPart(
        String name, String parameter, List<Integer> shape, int firstColumn, boolean transposed) {
    public StoredPart {
        shape = List.copyOf(shape);
    }

    /** A tensor that is a parameter as it stands. */
    static StoredPart whole(String name, String parameter, Integer... shape) {
        return new StoredPart(name, parameter, List.of(shape), 0, false);
    }

    /** Returns the rows of the parameter; 1 for vectors. */
    public int rows() {
        if (shape.size() == 1) {
            return 1;
        }
        return transposed ? shape.getLast() : shape.getFirst();
    }

    /** Returns how many columns of the parameter the tensor has. */
    public int columns() {
        return transposed ? shape.getFirst() : shape.getLast();
    }
}
