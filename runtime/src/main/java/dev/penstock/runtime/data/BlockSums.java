package dev.penstock.runtime.data;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;

/**
 * CRC-32C of each block of a shard's tokens. They follow the tokens, 4 bytes each and
 * little-endian, and after them their own. With them a reader can tell a damaged token from another
 * one without reading the whole shard.
 */
final class BlockSums {
    /** What Linux reads of a mapped file at a first touch anyway. Whole tokens, of 2 or 4 bytes. */
    static final int BLOCK = 1 << 17;

    private final int[] sums;

    BlockSums(int[] sums) {
        this.sums = sums;
    }

    /** The sums of tokens that are written in pieces of whole blocks, but for the last. */
    static final class Writer {
        private final List<Integer> sums = new ArrayList<>();

        /** Adds what is left in a buffer, which stays as it is. */
        void add(ByteBuffer tokens) {
            for (int at = tokens.position(); at < tokens.limit(); at += BLOCK) {
                int bytes = Math.min(BLOCK, tokens.limit() - at);
                sums.add(sum(tokens.slice(at, bytes)));
            }
        }

        /** Returns what follows the tokens in their file. */
        ByteBuffer trailer() {
            return new BlockSums(sums.stream().mapToInt(Integer::intValue).toArray()).write();
        }
    }

    private static int sum(ByteBuffer bytes) {
        CRC32C crc = new CRC32C();
        crc.update(bytes);
        return (int) crc.getValue();
    }

    private static long blocks(long bytes) {
        return Math.ceilDiv(bytes, BLOCK);
    }

    /** Returns how many bytes follow so many bytes of tokens. */
    static long bytesFor(long bytes) {
        return (blocks(bytes) + 1) * Integer.BYTES;
    }

    ByteBuffer write() {
        ByteBuffer trailer =
                ByteBuffer.allocate((sums.length + 1) * Integer.BYTES)
                        .order(ByteOrder.LITTLE_ENDIAN);
        for (int sum : sums) {
            trailer.putInt(sum);
        }
        return trailer.putInt(sum(trailer.duplicate().flip())).flip();
    }

    /**
     * Reads them; null if they are damaged.
     *
     * @param bytes of the tokens
     * @param at where they begin in the file
     */
    static @Nullable BlockSums read(FileChannel channel, long bytes, long at) throws IOException {
        int size = Math.toIntExact(bytesFor(bytes));
        ByteBuffer trailer = ByteBuffer.allocate(size).order(ByteOrder.LITTLE_ENDIAN);
        while (trailer.hasRemaining()) {
            if (channel.read(trailer, at + trailer.position()) < 0) {
                return null;
            }
        }
        trailer.flip();
        int[] sums = new int[size / Integer.BYTES - 1];
        for (int i = 0; i < sums.length; i++) {
            sums[i] = trailer.getInt();
        }
        int own = trailer.getInt();
        return own == sum(trailer.slice(0, size - Integer.BYTES)) ? new BlockSums(sums) : null;
    }

    /**
     * Returns whether block {@code block} of the tokens is as it was written.
     *
     * @param tokens all of the shard's
     */
    boolean areOf(MemorySegment tokens, int block) {
        long at = (long) block * BLOCK;
        long bytes = Math.min(BLOCK, tokens.byteSize() - at);
        return sum(tokens.asSlice(at, bytes).asByteBuffer()) == sums[block];
    }

    int blocks() {
        return sums.length;
    }
}
