package dev.penstock.runtime.data;

/** A long row of tokens. Safe to read from any thread. */
interface TokenRow {
    /** Returns how many there are. */
    long size();

    /** Returns token {@code index}. */
    int get(long index);

    /** Copies {@code count} tokens from {@code first} on. */
    default void copy(long first, int[] target, int offset, int count) {
        for (int i = 0; i < count; i++) {
            target[offset + i] = get(first + i);
        }
    }
}
