package dev.penstock.runtime.model.memory;

import dev.penstock.cuda.device.DeviceBuffer;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.DeviceScope;

import org.jspecify.annotations.Nullable;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * Memory in files of a folder instead of the device's, for tensors that are used once a step. Only
 * for devices that compute on the host. The files are gone when this is closed or the process ends.
 */
final class MappedScope implements DeviceScope {
    private static final int BLOCK_BYTES = 1 << 20;

    private final String name;
    private final Path folder;
    private final String key;
    private final Arena arena = Arena.ofShared();
    private long liveBytes;
    private boolean closed;

    /**
     * @param key of the configuration, for errors
     */
    MappedScope(String name, Path folder, String key) {
        this.key = key;
        this.name = name;
        this.folder = folder;
    }

    @Override
    public String name() {
        return name;
    }

    /** Writes every byte first: a page for which the disk has no room would kill the process. */
    @Override
    public DeviceBuffer allocate(String bufferName, long bytes) {
        Path file = null;
        try {
            Files.createDirectories(folder);
            file = Files.createTempFile(folder, "offloaded-", ".bin");
            try (FileChannel channel =
                    FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
                fill(channel, bytes);
                MemorySegment segment =
                        channel.map(FileChannel.MapMode.READ_WRITE, 0, bytes, arena);
                liveBytes += bytes;
                return new MappedBuffer(bufferName, bytes, segment);
            }
        } catch (IOException e) {
            throw new DeviceException(
                    "offload %s: expected room for %,d bytes in %s, got '%s'; free some space, or name another folder as %s"
                            .formatted(bufferName, bytes, folder, e.getMessage(), key),
                    e);
        } finally {
            delete(file);
        }
    }

    private static void fill(FileChannel channel, long bytes) throws IOException {
        ByteBuffer zeros = ByteBuffer.allocate(BLOCK_BYTES);
        for (long at = 0; at < bytes; ) {
            zeros.clear().limit((int) Math.min(BLOCK_BYTES, bytes - at));
            at += channel.write(zeros, at);
        }
    }

    /** Deletes the file; what is mapped stays until it is unmapped. */
    private static void delete(@Nullable Path file) {
        if (file != null) {
            try {
                Files.deleteIfExists(file);
            } catch (IOException e) {
                file.toFile().deleteOnExit();
            }
        }
    }

    @Override
    public DeviceScope child(String childName, long limitBytes) {
        throw new UnsupportedOperationException("memory in a folder cannot be divided into parts");
    }

    @Override
    public long liveBytes() {
        return liveBytes;
    }

    @Override
    public long peakBytes() {
        return liveBytes;
    }

    @Override
    public void close() {
        if (!closed) {
            closed = true;
            liveBytes = 0;
            arena.close();
        }
    }

    private record MappedBuffer(String name, long bytes, MemorySegment mapped)
            implements DeviceBuffer {
        @Override
        public long address() {
            return mapped.address();
        }

        @Override
        public MemorySegment segment() {
            return mapped;
        }
    }
}
