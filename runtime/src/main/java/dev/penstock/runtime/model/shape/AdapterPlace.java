package dev.penstock.runtime.model.shape;

/**
 * Where a low-rank branch stands in every block: beside a linear layer, or beside some of its
 * columns, where a family stores apart what Penstock keeps side by side.
 *
 * @param linear the layer in a block, such as {@code attn.c_attn}
 * @param part what the family calls these columns, such as {@code q_proj}; empty: all of them
 * @param firstColumn of the layer's output
 * @param columns of the layer's output
 */
public record AdapterPlace(String linear, String part, int firstColumn, int columns) {
    /** Returns the name of the branch in a block; its two matrices begin with it. */
    public String name(int layer) {
        return "h." + layer + "." + linear + (part.isEmpty() ? "" : "." + part);
    }

    /** Returns the name of the matrix {@code [in, rank]} that reads the layer's input. */
    public String inner(int layer) {
        return name(layer) + FineTuning.INNER;
    }

    /** Returns the name of the matrix {@code [rank, out]} whose product is added to the output. */
    public String outer(int layer) {
        return name(layer) + FineTuning.OUTER;
    }
}
