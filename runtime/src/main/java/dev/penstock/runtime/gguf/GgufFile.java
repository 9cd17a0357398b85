package dev.penstock.runtime.gguf;

import static java.nio.ByteOrder.LITTLE_ENDIAN;

import dev.penstock.runtime.safetensors.StoredFileException;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * What is in a GGUF file: its metadata and its tensors' names, types and shapes. Every length and
 * offset is checked against the file. Elements are not read.
 *
 * @param version of the format
 * @param metadata by key, in the order of the file; of long lists only the length is kept
 * @param tensors in the order of the file
 */
public record GgufFile(
        Path path, int version, Map<String, GgufValue> metadata, List<Entry> tensors) {
    private static final int MAX_DIMENSIONS = 4;
    private static final int MAX_NAME_BYTES = 1 << 16;

    private static final int MAX_TENSORS = 100_000;
    private static final int MAX_VALUES = 10_000;

    /** Texts that are kept, all together; bounds what a hostile file makes us allocate. */
    private static final int MAX_TEXT_BYTES = 16 << 20;

    private static final int MAX_NESTING = 4;
    private static final ValueLayout.OfInt U32 =
            ValueLayout.JAVA_INT_UNALIGNED.withOrder(LITTLE_ENDIAN);
    private static final ValueLayout.OfLong U64 =
            ValueLayout.JAVA_LONG_UNALIGNED.withOrder(LITTLE_ENDIAN);

    /**
     * A tensor in the file.
     *
     * @param shape rows first; the file has it the other way round
     * @param bytes of its data
     */
    public record Entry(String name, GgufType type, List<Long> shape, long bytes) {
        /** Returns the number of elements. */
        public long elements() {
            return shape.stream().reduce(1L, (a, b) -> a * b);
        }
    }

    /** Thrown inside if a file is not what it should be. */
    private static final class MalformedException extends Exception {
        private static final long serialVersionUID = 1L;

        MalformedException(String problem) {
            super(problem);
        }
    }

    /** Returns whether a file begins as GGUF does. */
    public static boolean isOne(Path path) {
        try (FileChannel channel = FileChannel.open(path, StandardOpenOption.READ)) {
            ByteBuffer magic = ByteBuffer.allocate(4).order(LITTLE_ENDIAN);
            return channel.read(magic) == 4 && magic.getInt(0) == GgufWriter.MAGIC;
        } catch (IOException e) {
            return false; // whoever opens it says why
        }
    }

    /**
     * Reads everything but the tensors' elements.
     *
     * @throws StoredFileException if it cannot be read, is cut short or damaged
     */
    public static GgufFile read(Path path) {
        try (Arena arena = Arena.ofConfined();
                FileChannel channel = FileChannel.open(path, StandardOpenOption.READ)) {
            return read(path, channel.map(MapMode.READ_ONLY, 0, channel.size(), arena));
        } catch (IOException e) {
            throw StoredFileException.of(path, "read the file", e);
        }
    }

    /** The same for a file in memory. */
    static GgufFile read(Path path, MemorySegment bytes) {
        try {
            return new In(bytes).file(path);
        } catch (MalformedException e) {
            throw new StoredFileException(path, "not a GGUF file: " + e.getMessage(), e);
        }
    }

    private static final class In {
        private final MemorySegment bytes;
        private long at;
        private long textBytes;

        In(MemorySegment bytes) {
            this.bytes = bytes;
        }

        GgufFile file(Path path) throws MalformedException {
            if (u32() != GgufWriter.MAGIC) {
                throw new MalformedException("it does not begin with GGUF");
            }
            int version = u32();
            if (version < 2 || version > GgufWriter.VERSION) {
                throw new MalformedException(
                        "expected version 2 or 3, got " + Integer.toUnsignedString(version));
            }
            long tensorCount = count(24, MAX_TENSORS, "tensors");
            long valueCount = count(12, MAX_VALUES, "values");
            Map<String, GgufValue> metadata = new LinkedHashMap<>();
            for (long i = 0; i < valueCount; i++) {
                String key = text(MAX_NAME_BYTES);
                if (metadata.put(key, value(kind(), 0)) != null) {
                    throw new MalformedException("the key '%s' is there twice".formatted(key));
                }
            }
            return new GgufFile(path, version, metadata, tensors(tensorCount, metadata));
        }

        private List<Entry> tensors(long count, Map<String, GgufValue> metadata)
                throws MalformedException {
            List<Entry> tensors = new ArrayList<>();
            List<Long> offsets = new ArrayList<>();
            Set<String> names = new HashSet<>();
            for (long i = 0; i < count; i++) {
                Entry tensor = tensor();
                if (!names.add(tensor.name())) {
                    throw new MalformedException(
                            "the tensor '%s' is there twice".formatted(tensor.name()));
                }
                tensors.add(tensor);
                offsets.add(u64());
            }
            long alignment =
                    metadata.get("general.alignment") instanceof GgufValue.Count given
                            ? given.value()
                            : GgufWriter.ALIGNMENT;
            if (alignment < 1 || alignment > 1 << 20 || alignment % 8 != 0) {
                throw new MalformedException("an alignment of %d bytes".formatted(alignment));
            }
            long data = (at + alignment - 1) / alignment * alignment;
            for (int i = 0; i < tensors.size(); i++) {
                long room = bytes.byteSize() - data - offsets.get(i);
                if (offsets.get(i) < 0
                        || offsets.get(i) % alignment != 0
                        || room < tensors.get(i).bytes()) {
                    throw new MalformedException(
                            "%s: %d bytes at %s do not fit the file (cut short?)"
                                    .formatted(
                                            tensors.get(i).name(),
                                            tensors.get(i).bytes(),
                                            Long.toUnsignedString(offsets.get(i))));
                }
            }
            return tensors;
        }

        private Entry tensor() throws MalformedException {
            String name = text(MAX_NAME_BYTES);
            int dimensions = u32();
            if (dimensions < 0 || dimensions > MAX_DIMENSIONS) {
                throw new MalformedException(
                        "%s: %s dimensions".formatted(name, Integer.toUnsignedString(dimensions)));
            }
            List<Long> shape = new ArrayList<>();
            long elements = 1;
            for (int i = 0; i < dimensions; i++) {
                long size = u64();
                if (size < 0
                        || Math.multiplyHigh(elements, size) != 0
                        || elements * size < 0
                        || elements * size > 1L << 50) {
                    throw new MalformedException(name + ": larger than a file can hold");
                }
                elements *= size;
                shape.addFirst(size);
            }
            int id = u32();
            GgufType type =
                    GgufType.of(id)
                            .orElseThrow(
                                    () ->
                                            new MalformedException(
                                                    "%s: unknown type %d".formatted(name, id)));
            long row = shape.isEmpty() ? 1 : shape.getLast();
            if (row % type.blockElements() != 0) {
                throw new MalformedException(
                        "%s: rows of %d elements are no whole blocks of %s"
                                .formatted(name, row, type));
            }
            return new Entry(name, type, List.copyOf(shape), type.bytes(elements));
        }

        private GgufValue value(GgufKind kind, int nesting) throws MalformedException {
            return switch (kind) {
                case U8, U16, U32 -> new GgufValue.Count(unsigned(kind.bytes()));
                case U64, I64 -> new GgufValue.Count(u64());
                case I8, I16, I32 -> new GgufValue.Count(signed(kind.bytes()));
                case F32 -> new GgufValue.Real(decimal(Float.intBitsToFloat(u32())));
                case F64 -> new GgufValue.Real(Double.longBitsToDouble(u64()));
                case BOOL -> new GgufValue.Flag(unsigned(1) != 0);
                case STRING -> new GgufValue.Text(text(MAX_TEXT_BYTES));
                case ARRAY -> {
                    if (nesting == MAX_NESTING) {
                        throw new MalformedException("lists in lists in lists");
                    }
                    yield list(nesting);
                }
            };
        }

        /** The shortest number that is this float: 1.0E-5, not 9.999999747378752E-6. */
        private static double decimal(float value) {
            return Double.parseDouble(Float.toString(value));
        }

        private GgufValue list(int nesting) throws MalformedException {
            GgufKind kind = kind();
            int least = kind.bytes() > 0 ? kind.bytes() : Long.BYTES;
            long length = count(least, Integer.MAX_VALUE, "list elements");
            if (kind.bytes() > 0) {
                take(length * kind.bytes());
            } else {
                for (long i = 0; i < length; i++) {
                    if (kind == GgufKind.STRING) {
                        take(u64());
                    } else {
                        value(kind, nesting + 1);
                    }
                }
            }
            return new GgufValue.Skipped(kind.name(), length);
        }

        private GgufKind kind() throws MalformedException {
            int id = u32();
            return GgufKind.of(id)
                    .orElseThrow(
                            () ->
                                    new MalformedException(
                                            "unknown kind of value "
                                                    + Integer.toUnsignedString(id)));
        }

        private String text(int limit) throws MalformedException {
            long length = u64();
            textBytes += Math.clamp(length, 0, limit);
            if (length < 0 || length > limit || textBytes > MAX_TEXT_BYTES) {
                throw new MalformedException(
                        "a text of %s bytes, expected at most %d"
                                .formatted(Long.toUnsignedString(length), limit));
            }
            byte[] utf8 = bytes.asSlice(take(length), length).toArray(ValueLayout.JAVA_BYTE);
            try {
                return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(utf8)).toString();
            } catch (CharacterCodingException e) {
                throw new MalformedException("a text that is not UTF-8");
            }
        }

        /** Reads a number of things that take at least so many bytes each. */
        private long count(int leastBytes, int most, String what) throws MalformedException {
            long count = u64();
            if (count < 0 || count > most || count > (bytes.byteSize() - at) / leastBytes) {
                throw new MalformedException(
                        "%s %s do not fit the file (cut short?), or are more than %d"
                                .formatted(Long.toUnsignedString(count), what, most));
            }
            return count;
        }

        private long unsigned(int size) throws MalformedException {
            long from = take(size);
            long value = 0;
            for (int i = 0; i < size; i++) {
                value |= Byte.toUnsignedLong(bytes.get(ValueLayout.JAVA_BYTE, from + i)) << (8 * i);
            }
            return value;
        }

        private long signed(int size) throws MalformedException {
            int unused = Long.SIZE - 8 * size;
            return unsigned(size) << unused >> unused;
        }

        private int u32() throws MalformedException {
            return bytes.get(U32, take(4));
        }

        private long u64() throws MalformedException {
            return bytes.get(U64, take(8));
        }

        private long take(long count) throws MalformedException {
            if (count < 0 || count > bytes.byteSize() - at) {
                throw new MalformedException("it ends at byte %d".formatted(bytes.byteSize()));
            }
            at += count;
            return at - count;
        }
    }
}
