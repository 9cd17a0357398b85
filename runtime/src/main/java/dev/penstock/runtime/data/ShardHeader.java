package dev.penstock.runtime.data;

import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;

/**
 * The first 128 bytes of a shard of prepared tokens, little-endian; the tokens follow, then the
 * sums of their blocks. See {@code docs/formats.md}.
 *
 * @param tokenBytes bytes of a token, 2 or 4
 * @param vocabulary every token is below it
 * @param index of the shard, from 0
 * @param tokens how many follow
 * @param documents that begin in this shard
 * @param checksum CRC-32C of the tokens' bytes
 * @param plan SHA-256 of the plan that the shard is a part of, 64 hexadecimal digits
 * @param next where a stretch of the corpus begins from which the next shard continues
 * @param skip tokens of this stretch that are in this shard or earlier ones
 */
record ShardHeader(
        int tokenBytes,
        int vocabulary,
        int index,
        long tokens,
        long documents,
        int checksum,
        String plan,
        CorpusPlace next,
        long skip) {
    static final int BYTES = 128;

    /** PENSTKN1: nothing follows the tokens. */
    private static final long WITHOUT_SUMS = 0x314e4b54534e4550L;

    /** PENSTKN2: {@link BlockSums} follow the tokens. */
    private static final long MAGIC = 0x324e4b54534e4550L;

    private static final int CHECKED = BYTES - Integer.BYTES;

    ByteBuffer write() {
        ByteBuffer header = ByteBuffer.allocate(BYTES).order(ByteOrder.LITTLE_ENDIAN);
        header.putLong(MAGIC).putInt(tokenBytes).putInt(vocabulary);
        header.putInt(index).putInt(checksum).putLong(tokens).putLong(documents);
        header.put(HexFormat.of().parseHex(plan));
        header.putInt(next.file()).putInt(next.inDocument() ? 1 : 0);
        header.putLong(next.offset()).putLong(next.row()).putLong(skip);
        header.putInt(CHECKED, checksumOf(header));
        return header.clear();
    }

    private static int checksumOf(ByteBuffer header) {
        CRC32C crc = new CRC32C();
        byte[] checked = new byte[CHECKED];
        header.get(0, checked);
        crc.update(checked);
        return (int) crc.getValue();
    }

    /**
     * Returns whether a file begins as a shard does, as far as it goes, or with zeros, as a disk
     * leaves it that lost all but the size.
     */
    static boolean mayBegin(Path file) throws IOException {
        try (InputStream in = Files.newInputStream(file)) {
            byte[] begin = in.readNBytes(Long.BYTES);
            return begins(begin, MAGIC)
                    || begins(begin, WITHOUT_SUMS)
                    || Arrays.equals(begin, new byte[begin.length]);
        }
    }

    private static boolean begins(byte[] begin, long magic) {
        ByteBuffer bytes = ByteBuffer.allocate(Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        return Arrays.equals(begin, Arrays.copyOf(bytes.putLong(magic).array(), begin.length));
    }

    /** Returns the bytes of the tokens. */
    long tokenData() {
        return tokens * tokenBytes;
    }

    /**
     * Returns the header of a file that has all its tokens and the sums of their blocks, which are
     * not compared; null if it is no whole shard.
     */
    static @Nullable ShardHeader read(Path file) throws IOException {
        ByteBuffer header = ByteBuffer.allocate(BYTES).order(ByteOrder.LITTLE_ENDIAN);
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
            while (header.hasRemaining() && channel.read(header) >= 0) {
                // goes on until it is full
            }
            if (header.hasRemaining() || header.getInt(CHECKED) != checksumOf(header)) {
                return null;
            }
            long magic = header.getLong(0);
            ShardHeader read = parse(header.flip().position(Long.BYTES));
            return read.isOf(channel, magic) ? read : null;
        } catch (NoSuchFileException e) {
            return null;
        }
    }

    /** The size of a file alone says whether it has sums, and these whether they are whole. */
    private boolean isOf(FileChannel channel, long magic) throws IOException {
        long data = channel.size() - BYTES;
        if ((tokenBytes != 2 && tokenBytes != 4) || tokens < 0 || tokens > data / tokenBytes) {
            return false;
        }
        if (magic == WITHOUT_SUMS) {
            return data == tokenData();
        }
        return magic == MAGIC
                && data == tokenData() + BlockSums.bytesFor(tokenData())
                && BlockSums.read(channel, tokenData(), BYTES + tokenData()) != null;
    }

    private static ShardHeader parse(ByteBuffer header) {
        int tokenBytes = header.getInt();
        int vocabulary = header.getInt();
        int index = header.getInt();
        int checksum = header.getInt();
        long tokens = header.getLong();
        long documents = header.getLong();
        byte[] plan = new byte[32];
        header.get(plan);
        int file = header.getInt();
        boolean inDocument = header.getInt() != 0;
        CorpusPlace next = new CorpusPlace(file, header.getLong(), header.getLong(), inDocument);
        return new ShardHeader(
                tokenBytes,
                vocabulary,
                index,
                tokens,
                documents,
                checksum,
                HexFormat.of().formatHex(plan),
                next,
                header.getLong());
    }
}
