package dev.penstock.cuda.device;

/**
 * Which elements of a matrix dropout keeps (Srivastava et al. 2014). Whether one is kept depends on
 * the key of its row, on the site and on its column alone, so that no mask need be remembered and
 * any part of a matrix can be computed anywhere: SplitMix64's output function of a counter, its
 * upper 32 bits compared with a threshold.
 *
 * @param site a number of the place in the model, any bits; places with different numbers have
 *     independent masks
 * @param firstColumn number of the tensor's first column in the whole matrix
 * @param probability with which an element is dropped, at least 0 and below 1
 * @param scale factor of what is kept: 1 / (1 - probability), or 1 where that is multiplied later
 */
public record DropoutMask(long site, int firstColumn, double probability, float scale) {
    /** The distance of successive counters: 2^64 / golden ratio. */
    private static final long STEP = 0x9E3779B97F4A7C15L;

    public DropoutMask {
        if (!(probability >= 0 && probability < 1) || firstColumn < 0) {
            throw new IllegalArgumentException(
                    "dropout: expected a probability in [0, 1) and a first column from 0, got %s and %d"
                            .formatted(probability, firstColumn));
        }
    }

    /** Returns a mask whose results have the average of their input. */
    public static DropoutMask scaled(long site, int firstColumn, double probability) {
        return new DropoutMask(site, firstColumn, probability, (float) (1 / (1 - probability)));
    }

    /** Returns whether an element is kept; its column is counted in the tensor. */
    public boolean keeps(long rowKey, int column) {
        return mix((rowKey ^ site) + (firstColumn + column + 1L) * STEP) >>> 32 >= threshold();
    }

    /** Returns how many of 2^32 equally likely numbers, the lowest ones, mean dropped. */
    public long threshold() {
        return Math.min(Math.round(probability * 0x1p32), 0xFFFF_FFFFL);
    }

    /** SplitMix64's finisher: every bit of the input moves about half the bits of the output. */
    public static long mix(long z) {
        z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
        z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
        return z ^ (z >>> 31);
    }
}
