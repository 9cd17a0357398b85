package dev.penstock.runtime.gguf;

import static java.nio.ByteOrder.LITTLE_ENDIAN;

import dev.penstock.runtime.safetensors.OutOfRangeException;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.safetensors.StoredType;
import dev.penstock.runtime.safetensors.TensorSource;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.Map;

/** Writes a GGUF file of version 3, little-endian, tensors converted piece by piece. */
final class GgufWriter {
    static final int MAGIC = 0x46554747;
    static final int VERSION = 3;
    static final int ALIGNMENT = 32;

    /** Elements converted at a time, whole blocks of every type. */
    private static final int ELEMENTS = 1 << 16;

    private GgufWriter() {}

    /** Returns the bytes that {@link #write} would put on disk. */
    static long bytes(Map<String, GgufValue> metadata, List<GgufTensor> tensors) {
        long data = tensors.stream().mapToLong(tensor -> aligned(tensor.bytes())).sum();
        return header(metadata, tensors).length + data;
    }

    /**
     * Writes and flushes a new file.
     *
     * @throws StoredFileException if it exists or cannot be written
     * @throws OutOfRangeException if a value does not fit its type; what was written is left for
     *     the caller to remove, as always
     */
    static void write(Path path, Map<String, GgufValue> metadata, List<GgufTensor> tensors) {
        try (FileChannel channel =
                        FileChannel.open(
                                path, StandardOpenOption.WRITE, StandardOpenOption.CREATE_NEW);
                Arena arena = Arena.ofConfined()) {
            write(channel, MemorySegment.ofArray(header(metadata, tensors)));
            MemorySegment floats = arena.allocate((long) ELEMENTS * Float.BYTES, Long.BYTES);
            MemorySegment encoded = arena.allocate((long) ELEMENTS * Float.BYTES, Long.BYTES);
            MemorySegment zeros = arena.allocate(ALIGNMENT);
            for (GgufTensor tensor : tensors) {
                write(channel, tensor, floats, encoded);
                long padding = aligned(tensor.bytes()) - tensor.bytes();
                write(channel, zeros.asSlice(0, padding));
            }
            channel.force(true);
        } catch (IOException e) {
            throw StoredFileException.of(path, "write the file", e);
        }
    }

    private static void write(
            FileChannel channel, GgufTensor tensor, MemorySegment floats, MemorySegment encoded)
            throws IOException {
        StoredType type =
                switch (tensor.type()) {
                    case F16 -> StoredType.F16;
                    case BF16 -> StoredType.BF16;
                    default -> StoredType.F32;
                };
        try (TensorSource.Reading reading = tensor.source().as(type).open()) {
            for (long left = tensor.elements(); left > 0; ) {
                int count = (int) Math.min(ELEMENTS, left);
                MemorySegment next = reading.next(count * type.bytes(), floats);
                if (tensor.type() == GgufType.Q8_0) {
                    int blocks = count / Q8Blocks.ELEMENTS;
                    if (!Q8Blocks.encode(next, encoded, blocks)) {
                        throw new OutOfRangeException(tensor.name(), Q8Blocks.problem(next, count));
                    }
                    next = encoded.asSlice(0, (long) blocks * Q8Blocks.BYTES);
                }
                write(channel, next);
                left -= count;
            }
        }
    }

    private static void write(FileChannel channel, MemorySegment bytes) throws IOException {
        ByteBuffer buffer = bytes.asByteBuffer();
        while (buffer.hasRemaining()) {
            channel.write(buffer);
        }
    }

    private static byte[] header(Map<String, GgufValue> metadata, List<GgufTensor> tensors) {
        Out out = new Out();
        out.u32(MAGIC);
        out.u32(VERSION);
        out.u64(tensors.size());
        out.u64(metadata.size());
        metadata.forEach(
                (key, value) -> {
                    out.text(key);
                    out.value(value);
                });
        long offset = 0;
        for (GgufTensor tensor : tensors) {
            out.text(tensor.name());
            out.u32(tensor.shape().size());
            for (int dimension : tensor.shape().reversed()) {
                out.u64(dimension);
            }
            out.u32(tensor.type().id());
            out.u64(offset);
            offset += aligned(tensor.bytes());
        }
        out.pad();
        return out.bytes.toByteArray();
    }

    private static long aligned(long offset) {
        return (offset + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }

    /** Numbers and texts one after another. */
    private static final class Out {
        private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();

        void value(GgufValue value) {
            switch (value) {
                case GgufValue.Count count -> {
                    u32(GgufKind.U32.id());
                    u32(Math.toIntExact(count.value()));
                }
                case GgufValue.Real real -> {
                    u32(GgufKind.F32.id());
                    u32(Float.floatToRawIntBits((float) real.value()));
                }
                case GgufValue.Flag flag -> {
                    u32(GgufKind.BOOL.id());
                    bytes.write(flag.value() ? 1 : 0);
                }
                case GgufValue.Text text -> {
                    u32(GgufKind.STRING.id());
                    text(text.value());
                }
                case GgufValue.Texts texts -> {
                    array(GgufKind.STRING, texts.values().size());
                    texts.values().forEach(this::text);
                }
                case GgufValue.Numbers numbers -> {
                    array(GgufKind.I32, numbers.values().size());
                    numbers.values().forEach(this::u32);
                }
                case GgufValue.Reals reals -> {
                    array(GgufKind.F32, reals.values().size());
                    reals.values().forEach(each -> u32(Float.floatToRawIntBits(each)));
                }
                case GgufValue.Skipped skipped ->
                        throw new IllegalArgumentException("not kept: " + skipped.what());
            }
        }

        private void array(GgufKind kind, int length) {
            u32(GgufKind.ARRAY.id());
            u32(kind.id());
            u64(length);
        }

        void text(String text) {
            byte[] utf8 = text.getBytes(StandardCharsets.UTF_8);
            u64(utf8.length);
            bytes.writeBytes(utf8);
        }

        void u32(int value) {
            bytes.writeBytes(ByteBuffer.allocate(4).order(LITTLE_ENDIAN).putInt(value).array());
        }

        void u64(long value) {
            bytes.writeBytes(ByteBuffer.allocate(8).order(LITTLE_ENDIAN).putLong(value).array());
        }

        void pad() {
            bytes.writeBytes(new byte[(int) (aligned(bytes.size()) - bytes.size())]);
        }
    }
}
