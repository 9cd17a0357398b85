package dev.penstock.runtime.data.rows;

/**
 * In which order unequal micro-batches go through the pipeline. The same lengths are always
 * arranged in the same way.
 */
@FunctionalInterface
public interface Arrangement {
    /**
     * Returns an order.
     *
     * @param tokens of a sequence of each micro-batch, rising
     * @return at p the index of the one that comes as number p
     */
    int[] of(int[] tokens);

    /** The short ones first. */
    static int[] rising(int count) {
        int[] order = new int[count];
        for (int i = 0; i < count; i++) {
            order[i] = i;
        }
        return order;
    }

    /** The long ones first. */
    static int[] falling(int count) {
        int[] order = new int[count];
        for (int i = 0; i < count; i++) {
            order[i] = count - 1 - i;
        }
        return order;
    }

    /**
     * The long ones in the middle: what others wait for while a pipeline fills and drains is short.
     */
    static int[] hill(int count) {
        int[] order = new int[count];
        for (int i = 0; i < count; i++) {
            order[i % 2 == 0 ? i / 2 : count - 1 - i / 2] = i;
        }
        return order;
    }

    /** The short ones in the middle. */
    static int[] valley(int count) {
        int[] order = new int[count];
        int[] hill = hill(count);
        for (int i = 0; i < count; i++) {
            order[i] = count - 1 - hill[i];
        }
        return order;
    }
}
