package dev.penstock.cuda.device;

import java.util.List;

/**
 * The heads of a retention (Sun et al., arXiv 2307.08621, section 2): h heads whose queries and
 * keys have n columns, values and gates m. Side by side in a row, in each the heads side by side:
 *
 * <pre>
 *   q [h*n] | k [h*n] | v [h*m] | gate [h*m], if there is one
 * </pre>
 *
 * @param keySize columns of a head's queries and keys, n
 * @param valueSize columns of a head's values, m
 * @param decays of each head, in (0, 1]: 1 forgets nothing
 * @param gated whether there is a gate
 */
public record RetentionShape(int keySize, int valueSize, List<Double> decays, boolean gated) {
    public RetentionShape {
        decays = List.copyOf(decays);
        if (keySize < 1 || valueSize < 1 || decays.isEmpty()) {
            throw new IllegalArgumentException(
                    "retention needs sizes of 1 or more, got %d heads with keys of %d and values of %d columns"
                            .formatted(decays.size(), keySize, valueSize));
        }
        if (decays.stream().anyMatch(decay -> !(decay > 0 && decay <= 1))) {
            throw new IllegalArgumentException("expected decays in (0, 1], got " + decays);
        }
    }

    /** Returns the number of heads, h. */
    public int heads() {
        return decays.size();
    }

    /** Returns the columns of all queries; keys have as many. */
    public int queryColumns() {
        return heads() * keySize;
    }

    /** Returns the columns of all values; gates and outputs have as many. */
    public int valueColumns() {
        return heads() * valueSize;
    }

    /** Returns the first column of the gates. */
    public int firstGate() {
        return 2 * queryColumns() + valueColumns();
    }

    /** Returns the columns of a row. */
    public int columns() {
        return firstGate() + (gated ? valueColumns() : 0);
    }

    /** Returns the elements of one head's state: n rows of m. */
    public int stateOfHead() {
        return keySize * valueSize;
    }

    /** Returns the elements of the states of all heads. */
    public int stateColumns() {
        return heads() * stateOfHead();
    }

    /** Returns the factor of all products of queries and keys. */
    public double scale() {
        return 1 / Math.sqrt(keySize);
    }

    /**
     * Returns the sum {@code 1 + g + .. + g^position} of a head's decay g, by whose root an output
     * is divided.
     */
    public double weightOf(int head, int position) {
        double decay = decays.get(head);
        return decay == 1
                ? position + 1.0
                : StrictMath.expm1((position + 1.0) * StrictMath.log(decay)) / (decay - 1);
    }
}
