package dev.penstock.runtime.safetensors;

import static java.nio.ByteOrder.LITTLE_ENDIAN;
import static java.nio.file.StandardOpenOption.CREATE_NEW;
import static java.nio.file.StandardOpenOption.WRITE;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;

/**
 * Writes safetensors files straight from the tensors' memory, without a copy of the whole. The hash
 * is taken on a thread of its own from the same memory while this thread writes and flushes, so a
 * write takes as long as the slower of the two, not as long as both.
 */
public final class SafetensorsWriter {
    private static final long CHUNK_BYTES = 1 << 20;

    private SafetensorsWriter() {}

    /** Observes a file as it grows; an exception that it throws counts as one of the disk's. */
    public interface Progress {
        /**
         * Called when {@code written} bytes are written and {@code count} follow; at the end none
         * follow.
         */
        void beforeWrite(long written, long count) throws IOException;
    }

    /**
     * A file that is on disk.
     *
     * @param sha256 of the whole file, lower-case hexadecimal
     */
    public record Written(long bytes, String sha256) {}

    /** Returns the bytes that {@link #write} would put on disk. */
    public static long bytes(Map<String, String> metadata, List<StoredTensor> tensors) {
        long data = tensors.stream().mapToLong(tensor -> tensor.data().byteSize()).sum();
        return 8 + SafetensorsHeader.of(metadata, ordered(tensors)).encode().length + data;
    }

    /**
     * Writes and flushes a new file. Tensors keep their order, wider types first so that all stay
     * aligned.
     *
     * @param tensors names are distinct; their memory is readable from any thread and unchanged
     *     until this returns
     * @throws StoredFileException if the file exists or cannot be written; what was written of it
     *     is left for the caller to remove
     */
    public static Written write(
            Path path, Map<String, String> metadata, List<StoredTensor> tensors) {
        return write(path, metadata, tensors, (_, _) -> {});
    }

    /** Same as the other, reporting its progress. */
    public static Written write(
            Path path,
            Map<String, String> metadata,
            List<StoredTensor> tensors,
            Progress progress) {
        List<MemorySegment> parts = parts(metadata, ordered(tensors));
        try (BackgroundHash hash = BackgroundHash.start(path.getFileName().toString(), parts);
                FileChannel channel = FileChannel.open(path, WRITE, CREATE_NEW)) {
            for (MemorySegment part : parts) {
                write(channel, part, progress);
            }
            progress.beforeWrite(channel.position(), 0);
            channel.force(true);
            return new Written(channel.size(), hash.join());
        } catch (IOException e) {
            throw StoredFileException.of(path, "write the file", e);
        }
    }

    private static List<StoredTensor> ordered(List<StoredTensor> tensors) {
        return tensors.stream()
                .sorted(Comparator.comparingInt(tensor -> -tensor.type().bytes()))
                .toList();
    }

    private static List<MemorySegment> parts(
            Map<String, String> metadata, List<StoredTensor> tensors) {
        byte[] header = SafetensorsHeader.of(metadata, tensors).encode();
        byte[] length = ByteBuffer.allocate(8).order(LITTLE_ENDIAN).putLong(header.length).array();
        List<MemorySegment> parts = new ArrayList<>();
        parts.add(MemorySegment.ofArray(length));
        parts.add(MemorySegment.ofArray(header));
        tensors.forEach(tensor -> parts.add(tensor.data()));
        return parts;
    }

    private static void write(FileChannel channel, MemorySegment part, Progress progress)
            throws IOException {
        for (long at = 0; at < part.byteSize(); at += CHUNK_BYTES) {
            ByteBuffer chunk = chunk(part, at);
            progress.beforeWrite(channel.position(), chunk.remaining());
            while (chunk.hasRemaining()) {
                channel.write(chunk);
            }
        }
    }

    private static ByteBuffer chunk(MemorySegment part, long at) {
        return part.asSlice(at, Math.min(CHUNK_BYTES, part.byteSize() - at)).asByteBuffer();
    }
}
