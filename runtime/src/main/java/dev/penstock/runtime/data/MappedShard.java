package dev.penstock.runtime.data;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.jspecify.annotations.Nullable;

/**
 * The tokens of a shard, mapped. Each block is compared with its checksum before the first token is
 * read from it. Safe to read from any thread.
 */
final class MappedShard {
    private final Path file;
    private final MemorySegment tokens;

    /** Null in a shard of the first version. */
    private final @Nullable BlockSums sums;

    /**
     * Blocks that were found whole. Not synchronized: a thread that does not see what another one
     * has found compares the block once more.
     */
    private final boolean[] whole;

    private MappedShard(Path file, MemorySegment tokens, @Nullable BlockSums sums) {
        this.file = file;
        this.tokens = tokens;
        this.sums = sums;
        this.whole = new boolean[sums == null ? 0 : sums.blocks()];
    }

    /**
     * Maps a shard as long as the result is in use.
     *
     * @param header of the file
     */
    static MappedShard open(Path file, ShardHeader header) throws IOException {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
            MemorySegment tokens =
                    channel.map(
                            FileChannel.MapMode.READ_ONLY,
                            ShardHeader.BYTES,
                            header.tokenData(),
                            Arena.ofAuto());
            long end = ShardHeader.BYTES + header.tokenData();
            if (channel.size() == end) {
                return new MappedShard(file, tokens, null);
            }
            BlockSums sums = BlockSums.read(channel, header.tokenData(), end);
            if (sums == null) {
                throw new IOException("its checksums are damaged");
            }
            return new MappedShard(file, tokens, sums);
        }
    }

    Path file() {
        return file;
    }

    /** Returns all of it, unchecked. */
    MemorySegment unchecked() {
        return tokens;
    }

    /**
     * Returns all of it, of which the given bytes are as they were written.
     *
     * @throws DataException if one of their blocks is damaged
     */
    MemorySegment checked(long from, long bytes) {
        if (sums != null) {
            int last = (int) ((from + bytes - 1) / BlockSums.BLOCK);
            for (int block = (int) (from / BlockSums.BLOCK); block <= last; block++) {
                if (!whole[block]) {
                    check(sums, block);
                }
            }
        }
        return tokens;
    }

    private void check(BlockSums expected, int block) {
        if (!expected.areOf(tokens, block)) {
            long at = ShardHeader.BYTES + (long) block * BlockSums.BLOCK;
            long end = Math.min(at + BlockSums.BLOCK, ShardHeader.BYTES + tokens.byteSize());
            throw PreparedTokens.damagedTokens(
                    file, "other bytes somewhere from offset %d to %d".formatted(at, end - 1));
        }
        whole[block] = true;
    }
}
