package dev.penstock.runtime.data;

import static java.nio.file.StandardOpenOption.CREATE;
import static java.nio.file.StandardOpenOption.TRUNCATE_EXISTING;
import static java.nio.file.StandardOpenOption.WRITE;

import dev.penstock.runtime.checkpoint.DurableFiles;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.zip.CRC32C;

/**
 * Writes one shard. It has another name until it is whole and on disk; the header is written last.
 */
final class ShardWriter implements AutoCloseable {
    static final String PARTIAL = ".part";

    private final Path file;
    private final Path partial;
    private final FileChannel channel;
    private final int tokenBytes;

    /** Whole blocks, so that only the last flush ends within one. */
    private final ByteBuffer buffer =
            ByteBuffer.allocateDirect(8 * BlockSums.BLOCK).order(ByteOrder.LITTLE_ENDIAN);

    private final CRC32C crc = new CRC32C();
    private final BlockSums.Writer sums = new BlockSums.Writer();
    private long tokens;

    ShardWriter(Path file, int tokenBytes) throws IOException {
        this.file = file;
        this.partial = file.resolveSibling(file.getFileName() + PARTIAL);
        this.tokenBytes = tokenBytes;
        this.channel = FileChannel.open(partial, WRITE, CREATE, TRUNCATE_EXISTING);
        channel.position(ShardHeader.BYTES);
    }

    long tokens() {
        return tokens;
    }

    void add(int token) throws IOException {
        if (buffer.remaining() < tokenBytes) {
            flush();
        }
        if (tokenBytes == 2) {
            buffer.putChar((char) token);
        } else {
            buffer.putInt(token);
        }
        tokens++;
    }

    private void flush() throws IOException {
        buffer.flip();
        crc.update(buffer.duplicate());
        sums.add(buffer);
        while (buffer.hasRemaining()) {
            channel.write(buffer);
        }
        buffer.clear();
    }

    /** Flushes the tokens and returns their checksum. */
    int checksum() throws IOException {
        flush();
        return (int) crc.getValue();
    }

    /** Completes the file after its tokens were flushed; it then has its name. */
    void finish(ShardHeader header) throws IOException {
        ByteBuffer trailer = sums.trailer();
        while (trailer.hasRemaining()) {
            channel.write(trailer);
        }
        ByteBuffer bytes = header.write();
        for (long at = 0; bytes.hasRemaining(); ) {
            at += channel.write(bytes, at);
        }
        channel.force(true);
        channel.close();
        Files.move(partial, file, StandardCopyOption.ATOMIC_MOVE);
        DurableFiles.syncFolder(DurableFiles.folderOf(file));
    }

    @Override
    public void close() throws IOException {
        channel.close();
    }
}
