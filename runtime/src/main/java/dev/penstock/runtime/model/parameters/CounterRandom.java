package dev.penstock.runtime.model.parameters;

import java.nio.charset.StandardCharsets;

/**
 * Random numbers without state: each depends only on a key and an index, so any part of a tensor
 * can be filled by any rank in any order. SplitMix64's output function over key + index; the same
 * bits on every machine.
 */
public final class CounterRandom {
    private static final long GOLDEN = 0x9E3779B97F4A7C15L;

    private final long key;

    private CounterRandom(long key) {
        this.key = key;
    }

    /** Returns the numbers of one purpose under a seed. */
    public static CounterRandom of(long seed, String purpose) {
        long hash = 0xCBF29CE484222325L; // FNV-1a
        for (byte b : purpose.getBytes(StandardCharsets.UTF_8)) {
            hash = (hash ^ (b & 0xFF)) * 0x100000001B3L;
        }
        return new CounterRandom(mix(mix(seed + GOLDEN) ^ hash));
    }

    /** Returns a number in (0, 1), both ends excluded, with 53 bits. */
    public double uniform(long index) {
        return ((bits(index) >>> 11) + 0.5) * 0x1p-53;
    }

    /** Returns 64 random bits. */
    public long bits(long index) {
        return mix(key + (index + 1) * GOLDEN);
    }

    /** Returns a standard normal number. */
    public double normal(long index) {
        return NormalQuantile.of(uniform(index));
    }

    private static long mix(long z) {
        z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
        z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
        return z ^ (z >>> 31);
    }
}
