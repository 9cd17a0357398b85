package dev.penstock.schedules.ir;

/**
 * Some layers of a stage, counted from its first.
 *
 * @param first first layer, 0-based
 * @param last last layer, included
 */
public record LayerRange(int first, int last) {
    /** Every layer of the stage, however many it has. */
    public static final LayerRange ALL = new LayerRange(0, Integer.MAX_VALUE);

    public LayerRange {
        if (first < 0 || last < first) {
            throw new IllegalArgumentException(
                    "layers are counted from 0 and rise, got %d to %d".formatted(first, last));
        }
    }

    /** Whether it is every layer of the stage. */
    public boolean isAll() {
        return equals(ALL);
    }
}
