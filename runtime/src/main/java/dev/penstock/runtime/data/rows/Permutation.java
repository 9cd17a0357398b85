package dev.penstock.runtime.data.rows;

/**
 * A pseudo-random order of {@code 0 .. size-1} that needs no memory: a four-round Feistel network
 * over the next power of four, walked on until it lands below {@code size}.
 */
public final class Permutation {
    private static final int ROUNDS = 4;

    private final long size;
    private final int halfBits;
    private final long[] keys = new long[ROUNDS];

    /**
     * @param size from 1 to 2^60
     * @param key selects the order
     */
    public Permutation(long size, long key) {
        this.size = size;
        int bits = Math.max(2, Long.SIZE - Long.numberOfLeadingZeros(size - 1));
        this.halfBits = (bits + 1) / 2;
        for (int round = 0; round < ROUNDS; round++) {
            keys[round] = mix(key + round * 0x9e3779b97f4a7c15L);
        }
    }

    /** Returns the image of {@code index}; distinct for distinct indices. */
    public long at(long index) {
        long value = index;
        do {
            value = scramble(value);
        } while (value >= size);
        return value;
    }

    private long scramble(long value) {
        long mask = (1L << halfBits) - 1;
        long left = value >>> halfBits;
        long right = value & mask;
        for (long key : keys) {
            long next = left ^ (mix(right + key) & mask);
            left = right;
            right = next;
        }
        return left << halfBits | right;
    }

    /** SplitMix64's finisher: every bit of the input moves about half the bits of the output. */
    public static long mix(long value) {
        long z = value + 0x9e3779b97f4a7c15L;
        z = (z ^ (z >>> 30)) * 0xbf58476d1ce4e5b9L;
        z = (z ^ (z >>> 27)) * 0x94d049bb133111ebL;
        return z ^ (z >>> 31);
    }
}
