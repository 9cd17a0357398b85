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
 * The first 128 bytes of a shard of prepared tokens, little-endian; the tokens follow. See {@code
 * docs/formats.md}.
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

    private static final long MAGIC = 0x314e4b54534e4550L; // PENSTKN1
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
        ByteBuffer magic = ByteBuffer.allocate(Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        magic.putLong(MAGIC);
        try (InputStream in = Files.newInputStream(file)) {
            byte[] begin = in.readNBytes(Long.BYTES);
            return Arrays.equals(begin, Arrays.copyOf(magic.array(), begin.length))
                    || Arrays.equals(begin, new byte[begin.length]);
        }
    }

    /** Returns the header of a file that has all its tokens; null if it is no whole shard. */
    static @Nullable ShardHeader read(Path file) throws IOException {
        ByteBuffer header = ByteBuffer.allocate(BYTES).order(ByteOrder.LITTLE_ENDIAN);
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
            while (header.hasRemaining() && channel.read(header) >= 0) {
                // goes on until it is full
            }
        } catch (NoSuchFileException e) {
            return null;
        }
        if (header.hasRemaining()
                || header.getLong(0) != MAGIC
                || header.getInt(CHECKED) != checksumOf(header)) {
            return null;
        }
        ShardHeader read = parse(header.flip().position(Long.BYTES));
        long data = Files.size(file) - BYTES;
        boolean whole =
                (read.tokenBytes == 2 || read.tokenBytes == 4)
                        && data % read.tokenBytes == 0
                        && read.tokens == data / read.tokenBytes;
        return whole ? read : null;
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
