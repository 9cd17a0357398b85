package dev.penstock.runtime.model.swap;

import static java.nio.file.StandardOpenOption.CREATE;
import static java.nio.file.StandardOpenOption.READ;
import static java.nio.file.StandardOpenOption.TRUNCATE_EXISTING;
import static java.nio.file.StandardOpenOption.WRITE;

import dev.penstock.cuda.device.DeviceBuffer;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.zip.CRC32C;

/**
 * A file whose content is valid only if its header says so.
 *
 * <pre>
 *   byte 0   magic   step   bytes of the content   CRC-32C of the content
 *     4096   content
 * </pre>
 */
final class SwapFile implements DeviceBuffer, AutoCloseable {
    /** A page, so that the content can be read without the page cache. */
    static final int HEADER_BYTES = 4096;

    private static final long MAGIC = 0x50415753_4B4E5450L;
    private static final int BLOCK_BYTES = 1 << 20;
    private static final int CHECKED_BYTES = 1 << 28;
    private static final ValueLayout.OfLong WORD = ValueLayout.JAVA_LONG;

    private final Path path;
    private final Arena arena = Arena.ofShared();
    private final MemorySegment whole;
    private final MemorySegment content;

    private SwapFile(Path path, FileChannel channel, long bytes) throws IOException {
        this.path = path;
        try {
            whole = channel.map(FileChannel.MapMode.READ_WRITE, 0, HEADER_BYTES + bytes, arena);
        } catch (IOException | RuntimeException e) {
            arena.close();
            throw e;
        }
        content = whole.asSlice(HEADER_BYTES);
    }

    /** Creates a file of zeros, every byte of it written: the disk has room for all of it. */
    static SwapFile create(Path path, long bytes) throws IOException {
        try (FileChannel channel = FileChannel.open(path, CREATE, TRUNCATE_EXISTING, READ, WRITE)) {
            ByteBuffer zeros = ByteBuffer.allocateDirect(BLOCK_BYTES);
            for (long at = 0; at < HEADER_BYTES + bytes; ) {
                zeros.clear().limit((int) Math.min(BLOCK_BYTES, HEADER_BYTES + bytes - at));
                at += channel.write(zeros, at);
            }
            return new SwapFile(path, channel, bytes);
        }
    }

    /** Creates a file with the same content and a header that says nothing. */
    SwapFile copy(Path to) throws IOException {
        try (FileChannel channel = FileChannel.open(to, CREATE, TRUNCATE_EXISTING, READ, WRITE)) {
            write(channel, MemorySegment.ofArray(new byte[HEADER_BYTES]), 0);
            for (long at = 0; at < content.byteSize(); at += BLOCK_BYTES) {
                long count = Math.min(BLOCK_BYTES, content.byteSize() - at);
                write(channel, content.asSlice(at, count), HEADER_BYTES + at);
            }
            return new SwapFile(to, channel, content.byteSize());
        }
    }

    private static void write(FileChannel channel, MemorySegment bytes, long at)
            throws IOException {
        ByteBuffer buffer = bytes.asByteBuffer();
        while (buffer.hasRemaining()) {
            channel.write(buffer, at + buffer.position());
        }
    }

    /** Opens what an earlier process left. */
    static SwapFile open(Path path) throws IOException {
        try (FileChannel channel = FileChannel.open(path, READ, WRITE)) {
            long bytes = channel.size() - HEADER_BYTES;
            if (bytes < 0) {
                throw new IOException("expected a header of %,d bytes".formatted(HEADER_BYTES));
            }
            return new SwapFile(path, channel, bytes);
        }
    }

    /** Declares the content valid after a step; durable when this returns. */
    void seal(long step) {
        whole.set(WORD, 8, step);
        whole.set(WORD, 16, content.byteSize());
        whole.set(WORD, 24, sum());
        whole.set(WORD, 0, MAGIC);
        whole.force();
    }

    /** Whether the content is what was sealed. */
    boolean isWhole() {
        return whole.get(WORD, 0) == MAGIC
                && whole.get(WORD, 16) == content.byteSize()
                && whole.get(WORD, 24) == sum();
    }

    /** The step that was sealed. */
    long step() {
        return whole.get(WORD, 8);
    }

    private long sum() {
        var sum = new CRC32C();
        for (long at = 0; at < content.byteSize(); at += CHECKED_BYTES) {
            long count = Math.min(CHECKED_BYTES, content.byteSize() - at);
            sum.update(content.asSlice(at, count).asByteBuffer());
        }
        return sum.getValue();
    }

    @Override
    public String name() {
        return path.toString();
    }

    @Override
    public long bytes() {
        return content.byteSize();
    }

    @Override
    public long address() {
        return content.address();
    }

    @Override
    public MemorySegment segment() {
        return content;
    }

    @Override
    public void close() {
        if (arena.scope().isAlive()) {
            arena.close();
        }
    }
}
