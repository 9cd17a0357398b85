package dev.penstock.runtime.inference;

import java.util.BitSet;
import java.util.OptionalInt;

/**
 * Divides the rows of kept keys and values among texts, in blocks of tokens. A text takes room for
 * its whole length at once: then none ever has to stop halfway for want of room, and since texts
 * end, whoever is first in a queue has its turn. Blocks of a text lie side by side, so that its
 * attention reads one matrix.
 *
 * <pre>
 *   blocks   0 0 0 | 1 | . . | 2 2 2 2 | .      three texts and three free blocks, of which two lie together
 * </pre>
 *
 * <p>Not safe for use by several threads at once.
 */
final class KeptRoom {
    /** Small texts waste at most this; room for a text of more is found soon enough. */
    private static final int BLOCK_TOKENS = 64;

    private final BitSet taken = new BitSet();
    private final int blocks;
    private final int blockTokens;

    private KeptRoom(int blocks, int blockTokens) {
        this.blocks = blocks;
        this.blockTokens = blockTokens;
    }

    /**
     * Makes room.
     *
     * @param texts that grow side by side
     * @param longest tokens that one of them keeps
     * @param tokens of all of them, at most; one of the longest has room in any case
     */
    static KeptRoom of(int texts, int longest, int tokens) {
        int block = Math.min(BLOCK_TOKENS, longest);
        int each = Math.ceilDiv(longest, block);
        int wanted = Math.max(each, tokens / block);
        long most = Math.min((long) texts * each, Integer.MAX_VALUE / block);
        return new KeptRoom((int) Math.min(wanted, most), block);
    }

    /** Returns how many tokens have room. */
    int tokens() {
        return Math.multiplyExact(blocks, blockTokens);
    }

    /** Returns how many of them are taken. */
    int taken() {
        return taken.cardinality() * blockTokens;
    }

    /**
     * Takes the first room that is large enough.
     *
     * @return where it begins; empty if there is none at the moment
     */
    OptionalInt take(int tokens) {
        int wanted = Math.ceilDiv(tokens, blockTokens);
        int from = taken.nextClearBit(0);
        while (from + wanted <= blocks) {
            int end = taken.nextSetBit(from);
            if (end < 0 || end - from >= wanted) {
                taken.set(from, from + wanted);
                return OptionalInt.of(from * blockTokens);
            }
            from = taken.nextClearBit(end);
        }
        return OptionalInt.empty();
    }

    /** Gives room back that was taken for so many tokens. */
    void give(int from, int tokens) {
        int first = from / blockTokens;
        taken.clear(first, first + Math.ceilDiv(tokens, blockTokens));
    }
}
