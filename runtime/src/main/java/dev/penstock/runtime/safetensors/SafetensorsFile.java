package dev.penstock.runtime.safetensors;

import static java.nio.ByteOrder.LITTLE_ENDIAN;

import dev.penstock.runtime.safetensors.SafetensorsHeader.MalformedException;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;

/**
 * A safetensors file mapped into memory, read-only: a U64 header length, a JSON header, the data.
 * Opening checks every length and offset against the file, so the tensors it hands out lie inside
 * it. The tensors may be read from any thread and die with {@link #close}. A file that shrinks
 * while it is open is found by {@link #requireWhole}.
 */
public final class SafetensorsFile implements StoredTensors {
    private static final int LENGTH_BYTES = 8;
    private static final ValueLayout.OfLong LENGTH =
            ValueLayout.JAVA_LONG_UNALIGNED.withOrder(LITTLE_ENDIAN);

    private final MappedFile file;
    private final Arena arena;
    private final Map<String, String> metadata;
    private final Map<String, StoredTensor> tensors;

    private SafetensorsFile(
            MappedFile file,
            Arena arena,
            Map<String, String> metadata,
            Map<String, StoredTensor> tensors) {
        this.file = file;
        this.arena = arena;
        this.metadata = Collections.unmodifiableMap(metadata);
        this.tensors = Collections.unmodifiableMap(tensors);
    }

    /**
     * Maps a file and checks its header.
     *
     * @throws StoredFileException if it cannot be read, is cut short or is not such a file
     */
    public static SafetensorsFile open(Path path) {
        Arena arena = Arena.ofShared();
        try (FileChannel channel = FileChannel.open(path, StandardOpenOption.READ)) {
            MemorySegment bytes = channel.map(MapMode.READ_ONLY, 0, channel.size(), arena);
            return read(path, arena, bytes);
        } catch (IOException e) {
            arena.close();
            throw StoredFileException.of(path, "read the file", e);
        } catch (MalformedException e) {
            arena.close();
            throw new StoredFileException(path, "not a safetensors file: " + e.getMessage(), e);
        }
    }

    private static SafetensorsFile read(Path path, Arena arena, MemorySegment bytes)
            throws IOException, MalformedException {
        long size = bytes.byteSize();
        if (size < LENGTH_BYTES) {
            throw new MalformedException(
                    "expected a header length of 8 bytes, but the file has %d".formatted(size));
        }
        long headerBytes = bytes.get(LENGTH, 0);
        if (headerBytes < 2
                || headerBytes > SafetensorsHeader.MAX_BYTES
                || headerBytes > size - LENGTH_BYTES) {
            throw new MalformedException(
                    "header length is %s bytes, expected 2 to %d (the file has %d)"
                            .formatted(
                                    Long.toUnsignedString(headerBytes),
                                    Math.min(SafetensorsHeader.MAX_BYTES, size - LENGTH_BYTES),
                                    size));
        }
        byte[] json = bytes.asSlice(LENGTH_BYTES, headerBytes).toArray(ValueLayout.JAVA_BYTE);
        MemorySegment data = bytes.asSlice(LENGTH_BYTES + headerBytes);
        SafetensorsHeader header = SafetensorsHeader.parse(json, data.byteSize());
        Map<String, StoredTensor> tensors = new LinkedHashMap<>();
        for (SafetensorsHeader.Entry entry : header.entries()) {
            MemorySegment elements = data.asSlice(entry.begin(), entry.end() - entry.begin());
            tensors.put(
                    entry.name(),
                    new StoredTensor(entry.name(), entry.type(), entry.shape(), elements));
        }
        return new SafetensorsFile(MappedFile.of(path, size), arena, header.metadata(), tensors);
    }

    @Override
    public Path path() {
        return file.path();
    }

    @Override
    public void requireWhole() {
        file.requireWhole();
    }

    /** Returns the free text under {@code __metadata__}; empty if the file has none. */
    public Map<String, String> metadata() {
        return metadata;
    }

    @Override
    public Collection<StoredTensor> tensors() {
        return tensors.values();
    }

    @Override
    public Optional<StoredTensor> find(String name) {
        return Optional.ofNullable(tensors.get(name));
    }

    /**
     * Returns a tensor by name.
     *
     * @throws StoredFileException if the file has no such tensor
     */
    public StoredTensor tensor(String name) {
        return find(name)
                .orElseThrow(
                        () ->
                                new StoredFileException(
                                        path(),
                                        "no tensor '%s' among %s".formatted(name, names())));
    }

    private String names() {
        int shown = 12;
        String names = String.join(", ", tensors.keySet().stream().limit(shown).toList());
        return tensors.size() <= shown
                ? "[" + names + "]"
                : "[%s and %d more]".formatted(names, tensors.size() - shown);
    }

    /** Unmaps the file; its tensors may not be touched afterwards. */
    @Override
    public void close() {
        arena.close();
    }
}
