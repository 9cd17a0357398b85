package dev.penstock.runtime.model.swap;

import static java.nio.file.StandardOpenOption.CREATE;
import static java.nio.file.StandardOpenOption.READ;
import static java.nio.file.StandardOpenOption.TRUNCATE_EXISTING;
import static java.nio.file.StandardOpenOption.WRITE;

import dev.penstock.cuda.device.DeviceBuffer;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.runtime.config.reading.FileCause;
import java.io.EOFException;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.CRC32C;

/**
 * A file of parts that are valid only if its header says so.
 *
 * <pre>
 *   byte 0   magic   step   turn   number of parts   (bytes   CRC-32C) of each
 *     4096   the parts, one after another
 * </pre>
 *
 * <p>Kernels compute only in parts that are mapped; whoever else reads and writes goes through the
 * file, so that no more of it is in memory than a block.
 */
final class SwapFile implements DeviceBuffer, AutoCloseable {
    /** A page. */
    static final int HEADER_BYTES = 4096;

    private static final long MAGIC = 0x50415753_334B4E50L;
    private static final int MOST_PARTS = 100;
    private static final int BLOCK_BYTES = 1 << 20;
    private static final int STEP_AT = 8;
    private static final int TURN_AT = 16;
    private static final int COUNT_AT = 24;
    private static final int PARTS_AT = 32;
    private static final long UNSEALED = Long.MIN_VALUE;

    private Path path;
    private final long bytes;
    private final Use use;
    private final List<Long> parts;
    private final Arena arena = Arena.ofShared();
    private final MemorySegment mapped;
    private Stamp stamp = new Stamp(UNSEALED, UNSEALED);
    private List<Long> sealed = List.of();

    /**
     * What a file is for.
     *
     * @param maps whether kernels compute in the parts
     * @param dropsPages whether the page cache keeps nothing of what is done with
     */
    record Use(boolean maps, boolean dropsPages) {}

    /**
     * When parts are valid.
     *
     * @param step after which
     * @param turn the step of the last outer turn that is in them; of a difference, the last step
     *     that is taken while its mean is formed
     */
    record Stamp(long step, long turn) {}

    private SwapFile(Path path, Use use, FileChannel channel, long bytes, List<Long> parts)
            throws IOException {
        this.path = path;
        this.use = use;
        this.bytes = bytes;
        this.parts = parts;
        try {
            mapped =
                    use.maps()
                            ? channel.map(
                                    FileChannel.MapMode.READ_WRITE, HEADER_BYTES, bytes, arena)
                            : MemorySegment.NULL;
        } catch (IOException | RuntimeException e) {
            arena.close();
            throw e;
        }
    }

    /**
     * Creates a file of zeros for which the disk has room. Where that can be had without writing
     * them, they are not written.
     *
     * @param parts their bytes
     */
    static SwapFile create(Path path, List<Long> parts, Use use) throws IOException {
        long bytes = parts.stream().mapToLong(Long::longValue).sum();
        try (FileChannel channel = FileChannel.open(path, CREATE, TRUNCATE_EXISTING, READ, WRITE)) {
            if (!FilePages.reserve(path, HEADER_BYTES + bytes)) {
                writeZeros(channel, HEADER_BYTES + bytes);
            }
            return new SwapFile(path, use, channel, bytes, List.copyOf(parts));
        }
    }

    private static void writeZeros(FileChannel channel, long bytes) throws IOException {
        ByteBuffer zeros = ByteBuffer.allocateDirect(BLOCK_BYTES);
        for (long at = 0; at < bytes; ) {
            zeros.clear().limit((int) Math.min(BLOCK_BYTES, bytes - at));
            at += channel.write(zeros, at);
        }
    }

    /**
     * Says whose file it is, too: neither another group's nor another replica's is taken for it.
     */
    private static long magic(Path path) {
        Path whole = path.toAbsolutePath().normalize();
        int names = whole.getNameCount();
        String name = whole.subpath(Math.max(0, names - 3), names).toString();
        var sum = new CRC32C();
        sum.update(name.replace(SwapText.NEXT, "").getBytes(StandardCharsets.UTF_8));
        return MAGIC ^ sum.getValue();
    }

    /** Opens what an earlier process left, to see whether it is valid. */
    static SwapFile open(Path path) throws IOException {
        return open(path, List.of(), new Use(false, false));
    }

    /**
     * Opens what an earlier process left.
     *
     * @param unsealed bytes of the parts of a file that was never sealed, and says nothing of them
     */
    static SwapFile open(Path path, List<Long> unsealed, Use use) throws IOException {
        try (FileChannel channel = FileChannel.open(path, READ, WRITE)) {
            long bytes = channel.size() - HEADER_BYTES;
            if (bytes < 0) {
                throw new IOException("expected a header of %,d bytes".formatted(HEADER_BYTES));
            }
            ByteBuffer header = ByteBuffer.allocate(HEADER_BYTES);
            while (header.hasRemaining() && channel.read(header, header.position()) >= 0) {}
            List<Long> parts = new ArrayList<>();
            List<Long> sums = new ArrayList<>();
            long count = header.getLong(COUNT_AT);
            boolean valid = header.getLong(0) == magic(path) && count >= 0 && count <= MOST_PARTS;
            if (valid) {
                for (int part = 0; part < count; part++) {
                    parts.add(header.getLong(PARTS_AT + 16 * part));
                    sums.add(header.getLong(PARTS_AT + 16 * part + 8));
                }
            }
            var file = new SwapFile(path, use, channel, bytes, valid ? parts : unsealed);
            if (valid) {
                file.stamp = new Stamp(header.getLong(STEP_AT), header.getLong(TURN_AT));
            }
            file.sealed = sums;
            return file;
        }
    }

    @Override
    public void read(long offset, MemorySegment target) {
        try (FileChannel channel = FileChannel.open(path, READ)) {
            read(channel, offset, target);
        } catch (IOException e) {
            throw new DeviceException(
                    "swap: expected to read %s, got '%s'; go on with --resume"
                            .formatted(path, FileCause.of(e)),
                    e);
        }
        if (use.dropsPages()) {
            FilePages.drop(path, HEADER_BYTES + offset, target.byteSize());
        }
    }

    private static void read(FileChannel channel, long offset, MemorySegment target)
            throws IOException {
        for (long done = 0; done < target.byteSize(); done += BLOCK_BYTES) {
            long count = Math.min(BLOCK_BYTES, target.byteSize() - done);
            ByteBuffer block = target.asSlice(done, count).asByteBuffer();
            while (block.hasRemaining()) {
                long position = HEADER_BYTES + offset + done + block.position();
                if (channel.read(block, position) < 0) {
                    throw new EOFException("it ends at byte %,d".formatted(position));
                }
            }
        }
    }

    @Override
    public void write(long offset, MemorySegment source) {
        if (use.maps()) {
            mapped.asSlice(offset, source.byteSize()).copyFrom(source);
            return;
        }
        try (FileChannel channel = FileChannel.open(path, WRITE)) {
            write(channel, offset, source);
        } catch (IOException e) {
            throw SwapFolder.failure("write", path, e);
        }
    }

    private static void write(FileChannel channel, long offset, MemorySegment source)
            throws IOException {
        for (long done = 0; done < source.byteSize(); done += BLOCK_BYTES) {
            long count = Math.min(BLOCK_BYTES, source.byteSize() - done);
            ByteBuffer block = source.asSlice(done, count).asByteBuffer();
            while (block.hasRemaining()) {
                channel.write(block, HEADER_BYTES + offset + done + block.position());
            }
        }
    }

    /** Takes the place of another file of the folder; durable when this returns. */
    void replace(Path other) throws IOException {
        SwapText.move(path, other);
        path = other;
    }

    /** Makes mapped parts zero, where that can be had without reading what they were. */
    void clear() {
        if (!FilePages.zero(path, HEADER_BYTES, bytes)) {
            mapped.fill((byte) 0);
        }
    }

    /** Lets mapped parts that were written leave the memory, and begins to write them to disk. */
    void leave() {
        mapped.unload();
        FilePages.writeBack(path);
    }

    /** Declares what was written valid; durable when this returns. */
    void seal(Stamp newStamp) throws IOException {
        try (FileChannel channel = FileChannel.open(path, WRITE)) {
            seal(channel, newStamp, sums());
        }
    }

    private void seal(FileChannel channel, Stamp newStamp, List<Long> sums) throws IOException {
        ByteBuffer header = ByteBuffer.allocate(HEADER_BYTES);
        header.putLong(0, magic(path)).putLong(STEP_AT, newStamp.step());
        header.putLong(TURN_AT, newStamp.turn()).putLong(COUNT_AT, parts.size());
        for (int part = 0; part < parts.size(); part++) {
            header.putLong(PARTS_AT + 16 * part, parts.get(part));
            header.putLong(PARTS_AT + 16 * part + 8, sums.get(part));
        }
        while (header.hasRemaining()) {
            channel.write(header, header.position());
        }
        if (use.maps()) {
            mapped.force();
            mapped.unload();
        }
        channel.force(true);
        if (use.dropsPages()) {
            FilePages.drop(path, 0, 0);
        }
        stamp = newStamp;
        sealed = sums;
    }

    /**
     * Reads a part from beginning to end, ahead of whom it serves: the operating system sees that
     * an open file is read in order.
     */
    final class Reading implements AutoCloseable {
        private final FileChannel channel;
        private long at;

        Reading(int part) throws IOException {
            channel = FileChannel.open(path, READ);
            at = start(part);
        }

        /** Reads the next bytes. */
        void read(MemorySegment target) throws IOException {
            SwapFile.read(channel, at, target);
            if (use.dropsPages()) {
                FilePages.drop(path, HEADER_BYTES + at, target.byteSize());
            }
            at += target.byteSize();
        }

        @Override
        public void close() throws IOException {
            channel.close();
        }
    }

    /** Writes all parts in turns, from beginning to end, and sums them up on the way. */
    final class Writing implements AutoCloseable {
        private final FileChannel channel;
        private final List<CRC32C> sums = new ArrayList<>();
        private final List<Long> written = new ArrayList<>();

        Writing() throws IOException {
            channel = FileChannel.open(path, WRITE);
            for (int part = 0; part < parts.size(); part++) {
                sums.add(new CRC32C());
                written.add(0L);
            }
        }

        /** Writes the next bytes of a part. */
        void write(int part, MemorySegment bytes) throws IOException {
            sums.get(part).update(bytes.asByteBuffer());
            SwapFile.write(channel, start(part) + written.get(part), bytes);
            written.set(part, written.get(part) + bytes.byteSize());
        }

        /** Declares the parts, all written, valid; durable when this returns. */
        void seal(Stamp newStamp) throws IOException {
            SwapFile.this.seal(channel, newStamp, sums.stream().map(CRC32C::getValue).toList());
        }

        @Override
        public void close() throws IOException {
            channel.close();
        }
    }

    /** Returns where a part begins, counted from the beginning of the first one. */
    long start(int part) {
        return parts.subList(0, part).stream().mapToLong(Long::longValue).sum();
    }

    /** Whether the parts are what was sealed. */
    boolean isWhole() throws IOException {
        return !sealed.isEmpty() && start(parts.size()) == bytes && sums().equals(sealed);
    }

    /** The step that was sealed. */
    long step() {
        return stamp.step();
    }

    /** The turn that was sealed. */
    long turn() {
        return stamp.turn();
    }

    /** Returns the bytes of each part. */
    List<Long> partBytes() {
        return parts;
    }

    /** Returns how many parts there are. */
    int parts() {
        return parts.size();
    }

    private List<Long> sums() throws IOException {
        List<Long> sums = new ArrayList<>();
        try (FileChannel channel = FileChannel.open(path, READ);
                Arena blocks = Arena.ofConfined()) {
            MemorySegment block = blocks.allocate(BLOCK_BYTES);
            for (int part = 0; part < parts.size(); part++) {
                var sum = new CRC32C();
                for (long at = 0; at < parts.get(part); at += BLOCK_BYTES) {
                    MemorySegment next =
                            block.asSlice(0, Math.min(BLOCK_BYTES, parts.get(part) - at));
                    read(channel, start(part) + at, next);
                    sum.update(next.asByteBuffer());
                }
                sums.add(sum.getValue());
            }
        }
        if (use.dropsPages()) {
            FilePages.drop(path, 0, 0);
        }
        return sums;
    }

    @Override
    public String name() {
        return path.toString();
    }

    @Override
    public long bytes() {
        return bytes;
    }

    @Override
    public boolean isHostMemory() {
        return use.maps();
    }

    @Override
    public long address() {
        return segment().address();
    }

    @Override
    public MemorySegment segment() {
        if (!use.maps()) {
            throw new DeviceException(path + " is not in memory");
        }
        return mapped;
    }

    @Override
    public MemorySegment contents(long offset, long count) {
        MemorySegment copy = Arena.ofAuto().allocate(count);
        read(offset, copy);
        return copy;
    }

    @Override
    public void close() {
        if (arena.scope().isAlive()) {
            arena.close();
        }
    }
}
