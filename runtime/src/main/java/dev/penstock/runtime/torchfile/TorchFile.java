package dev.penstock.runtime.torchfile;

import dev.penstock.runtime.safetensors.MappedFile;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.safetensors.StoredTensor;
import dev.penstock.runtime.safetensors.StoredTensors;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * A dictionary of tensors that {@code torch.save} wrote, such as {@code pytorch_model.bin}, mapped
 * into memory. Python's pickles can run any program when they are read; here nothing of the file is
 * run. Tensors that share a storage share its memory. A tensor whose elements do not lie in order
 * (a transposed one) is copied when the file is opened, outside the heap. A file that shrinks while
 * it is open is found by {@link #requireWhole}.
 */
public final class TorchFile implements StoredTensors {
    private static final int SHOWN = 20;

    private final MappedFile file;
    private final Arena arena;
    private final Map<String, StoredTensor> tensors;

    private TorchFile(MappedFile file, Arena arena, Map<String, StoredTensor> tensors) {
        this.file = file;
        this.arena = arena;
        this.tensors = Collections.unmodifiableMap(tensors);
    }

    /**
     * Maps a file and reads its table of contents.
     *
     * @throws StoredFileException if it cannot be read, is cut short, or is anything else than a
     *     dictionary of tensors by name
     */
    public static TorchFile open(Path path) {
        Arena arena = Arena.ofShared();
        try (FileChannel channel = FileChannel.open(path, StandardOpenOption.READ)) {
            MemorySegment file = channel.map(MapMode.READ_ONLY, 0, channel.size(), arena);
            return new TorchFile(MappedFile.of(path, file.byteSize()), arena, read(file, arena));
        } catch (IOException e) {
            arena.close();
            throw StoredFileException.of(path, "read the file", e);
        } catch (MalformedException e) {
            arena.close();
            throw new StoredFileException(
                    path, "not a dictionary of tensors that torch wrote: " + e.getMessage(), e);
        }
    }

    /** Returns whether a file begins as those that torch writes. */
    public static boolean isOne(Path path) {
        try (FileChannel channel = FileChannel.open(path, StandardOpenOption.READ);
                Arena start = Arena.ofConfined()) {
            MemorySegment file = channel.map(MapMode.READ_ONLY, 0, channel.size(), start);
            return StoredZip.isOne(file) || LegacyFile.isOne(file);
        } catch (IOException e) {
            return false; // whoever opens it says why
        }
    }

    /**
     * Reads the table of contents of a file in memory.
     *
     * @param arena gives the memory of copies
     */
    static Map<String, StoredTensor> read(MemorySegment file, Arena arena)
            throws MalformedException {
        Container container = container(file);
        Object table = Pickle.run(container.table()).result();
        if (!(table instanceof Pickle.Dictionary dictionary)) {
            throw new MalformedException("expected a dictionary in it");
        }
        requireTensors(dictionary);
        Map<String, StoredTensor> tensors = new LinkedHashMap<>();
        long copied = 0;
        for (Map.Entry<String, Object> entry : dictionary.values().entrySet()) {
            Pickle.View claimed = (Pickle.View) entry.getValue();
            MemorySegment storage = container.storage(claimed.storage().key());
            TensorView view = TensorView.of(claimed, storage.byteSize());
            copied += view.isContiguous() ? 0 : view.bytes();
            if (copied > file.byteSize()) {
                throw new MalformedException(
                        "its tensors are in strange orders; copies would be larger than the file");
            }
            tensors.put(entry.getKey(), view.tensor(entry.getKey(), storage, arena));
        }
        return tensors;
    }

    private static Container container(MemorySegment file) throws MalformedException {
        if (StoredZip.isOne(file)) {
            return StoredZip.read(file);
        }
        if (LegacyFile.isOne(file)) {
            return LegacyFile.read(file);
        }
        throw new MalformedException("it begins neither as a zip file nor as a pickle");
    }

    private static void requireTensors(Pickle.Dictionary dictionary) throws MalformedException {
        List<String> others = new ArrayList<>();
        dictionary
                .values()
                .forEach(
                        (name, value) -> {
                            if (!(value instanceof Pickle.View)) {
                                others.add("'" + name + "'");
                            }
                        });
        if (dictionary.strange() > 0) {
            others.add("%d keys that are no text".formatted(dictionary.strange()));
        }
        if (!others.isEmpty()) {
            throw new MalformedException(
                    "expected tensors alone, got something else under "
                            + String.join(", ", others.subList(0, Math.min(SHOWN, others.size())))
                            + (others.size() > SHOWN
                                    ? " and %d more".formatted(others.size() - SHOWN)
                                    : ""));
        }
    }

    @Override
    public Path path() {
        return file.path();
    }

    @Override
    public void requireWhole() {
        file.requireWhole();
    }

    @Override
    public Collection<StoredTensor> tensors() {
        return tensors.values();
    }

    @Override
    public Optional<StoredTensor> find(String name) {
        return Optional.ofNullable(tensors.get(name));
    }

    /** Unmaps the file; its tensors may not be touched afterwards. */
    @Override
    public void close() {
        arena.close();
    }
}
