package dev.penstock.runtime.safetensors;

import static java.nio.ByteOrder.LITTLE_ENDIAN;
import static java.nio.file.StandardOpenOption.CREATE_NEW;
import static java.nio.file.StandardOpenOption.WRITE;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Map;

/**
 * Writes safetensors files piece by piece: from the tensors' memory without a copy, or through a
 * few buffers where elements are converted on the way. The hash is taken on a thread of its own
 * while this thread writes and flushes, so a write takes about as long as the slower of the two,
 * not as long as both.
 */
public final class SafetensorsWriter {
    private static final int CHUNK_BYTES = 1 << 20;

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
    public static long bytes(Map<String, String> metadata, List<? extends TensorSource> tensors) {
        long data = tensors.stream().mapToLong(TensorSource::bytes).sum();
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
            Path path, Map<String, String> metadata, List<? extends TensorSource> tensors) {
        return write(path, metadata, tensors, (_, _) -> {});
    }

    /** Same as the other, reporting its progress. */
    public static Written write(
            Path path,
            Map<String, String> metadata,
            List<? extends TensorSource> tensors,
            Progress progress) {
        List<TensorSource> ordered = ordered(tensors);
        byte[] header = SafetensorsHeader.of(metadata, ordered).encode();
        byte[] length = ByteBuffer.allocate(8).order(LITTLE_ENDIAN).putLong(header.length).array();
        try (BackgroundHash hash =
                        BackgroundHash.start(path.getFileName().toString(), chunk(ordered));
                FileChannel channel = FileChannel.open(path, WRITE, CREATE_NEW)) {
            for (byte[] start : List.of(length, header)) {
                MemorySegment part = MemorySegment.ofArray(start);
                hash.update(part);
                write(channel, part, progress);
            }
            for (TensorSource tensor : ordered) {
                write(channel, tensor, hash, progress);
            }
            progress.beforeWrite(channel.position(), 0);
            channel.force(true);
            return new Written(channel.size(), hash.join());
        } catch (IOException e) {
            throw StoredFileException.of(path, "write the file", e);
        }
    }

    private static List<TensorSource> ordered(List<? extends TensorSource> tensors) {
        return tensors.stream()
                .<TensorSource>map(tensor -> tensor)
                .sorted(Comparator.comparingInt(tensor -> -tensor.type().bytes()))
                .toList();
    }

    /** Returns the most bytes that are written at once. */
    private static int chunk(List<TensorSource> tensors) {
        long largest = tensors.stream().mapToLong(TensorSource::bytes).max().orElse(0);
        return (int) Math.min(CHUNK_BYTES, largest);
    }

    private static void write(
            FileChannel channel, TensorSource tensor, BackgroundHash hash, Progress progress)
            throws IOException {
        try (TensorSource.Reading reading = tensor.open()) {
            for (long left = tensor.bytes(); left > 0; ) {
                int bytes = (int) Math.min(CHUNK_BYTES, left);
                MemorySegment buffer = hash.buffer();
                MemorySegment part = reading.next(bytes, buffer);
                hash.update(part, buffer);
                write(channel, part, progress);
                hash.release(buffer);
                left -= bytes;
            }
        }
    }

    private static void write(FileChannel channel, MemorySegment part, Progress progress)
            throws IOException {
        for (long at = 0; at < part.byteSize(); at += CHUNK_BYTES) {
            long bytes = Math.min(CHUNK_BYTES, part.byteSize() - at);
            ByteBuffer chunk = part.asSlice(at, bytes).asByteBuffer();
            progress.beforeWrite(channel.position(), chunk.remaining());
            while (chunk.hasRemaining()) {
                channel.write(chunk);
            }
        }
    }
}
