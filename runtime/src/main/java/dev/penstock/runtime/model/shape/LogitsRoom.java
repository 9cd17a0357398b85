package dev.penstock.runtime.model.shape;

/**
 * How many logits exist at the same time, and in which order a unit's rows get theirs.
 *
 * @param bytes of F32 logits; at least a block of the grid has room
 * @param inGridOrder whether products add rows in the order of the grid, so that the head has to
 *     take them in that order too
 */
public record LogitsRoom(long bytes, boolean inGridOrder) {
    /** Beyond this size, more rows at a time do not make products of a CPU faster. */
    public static final LogitsRoom ON_GRID = new LogitsRoom(64L << 20, true);

    /** Where memory is short: a block of the grid at a time. */
    public static final LogitsRoom LEAST = new LogitsRoom(0, true);

    /**
     * For a library that adds rows in an order of its own. A product of a GPU wants some thousand
     * rows: the gradient of the matrix is read and written once per chunk.
     */
    public static final LogitsRoom IN_ANY_ORDER = new LogitsRoom(512L << 20, false);
}
