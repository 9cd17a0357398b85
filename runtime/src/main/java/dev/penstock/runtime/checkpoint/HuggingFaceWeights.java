package dev.penstock.runtime.checkpoint;

import dev.penstock.actors.spi.TensorPiece;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.safetensors.StoredTensor;
import dev.penstock.runtime.safetensors.StoredTensors;
import dev.penstock.runtime.weights.WeightsFiles;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;

/**
 * Weights in safetensors files as transformers writes them for a GPT-2, with or without the {@code
 * transformer.} prefix, F32, F16 or BF16. The causal masks that old files carry are left out.
 */
public final class HuggingFaceWeights implements ModelTensors {
    static final String PREFIX = "transformer.";

    private final StoredTensors file;
    private final Map<String, StoredTensor> tensors;

    private HuggingFaceWeights(StoredTensors file, Map<String, StoredTensor> tensors) {
        this.file = file;
        this.tensors = Collections.unmodifiableMap(tensors);
    }

    /**
     * Opens weights.
     *
     * @param path as {@link WeightsFiles#open}
     * @throws StoredFileException if it cannot be read
     */
    public static HuggingFaceWeights open(Path path) {
        StoredTensors file = WeightsFiles.open(path);
        Map<String, StoredTensor> tensors = new LinkedHashMap<>();
        for (StoredTensor tensor : file.tensors()) {
            String name = bareName(tensor.name());
            if (isMask(name)) {
                continue;
            }
            StoredTensor renamed =
                    new StoredTensor(name, tensor.type(), tensor.shape(), tensor.data());
            if (tensors.put(name, renamed) != null) {
                file.close();
                throw new StoredFileException(
                        path, name + " exists with and without '" + PREFIX + "'");
            }
        }
        return new HuggingFaceWeights(file, tensors);
    }

    /** Returns whether a folder has weights under their usual name. */
    public static boolean areIn(Path folder) {
        return WeightsFiles.areIn(folder);
    }

    private static String bareName(String name) {
        return name.startsWith(PREFIX) ? name.substring(PREFIX.length()) : name;
    }

    private static boolean isMask(String name) {
        return name.endsWith(".attn.bias") || name.endsWith(".attn.masked_bias");
    }

    /** Returns the model's shape, if there is a {@code config.json} next to the weights. */
    public Optional<Gpt2Config> config() {
        Path config = file.path().resolveSibling(Gpt2Config.FILE);
        return Files.exists(config) ? Optional.of(Gpt2Config.read(config)) : Optional.empty();
    }

    @Override
    public Path path() {
        return file.path();
    }

    @Override
    public Collection<StoredTensor> tensors() {
        return tensors.values();
    }

    @Override
    public Optional<StoredTensor> find(String name) {
        return Optional.ofNullable(tensors.get(name));
    }

    @Override
    public Optional<StoredTensor> read(String name, Arena arena) {
        return find(name);
    }

    @Override
    public Optional<StoredTensor> source(String name) {
        return find(name);
    }

    @Override
    public void copy(String name, TensorPiece piece, MemorySegment destination) {
        find(name)
                .orElseThrow(() -> new StoredFileException(path(), "no tensor '" + name + "'"))
                .copyTo(piece, destination);
    }

    @Override
    public void close() {
        file.close();
    }
}
