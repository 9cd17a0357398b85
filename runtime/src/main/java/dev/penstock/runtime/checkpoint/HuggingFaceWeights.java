package dev.penstock.runtime.checkpoint;

import dev.penstock.actors.spi.TensorPiece;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.safetensors.SafetensorsFile;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.safetensors.StoredTensor;
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
 * Weights in a safetensors file as transformers writes them for a GPT-2, with or without the {@code
 * transformer.} prefix, F32, F16 or BF16. The causal masks that old files carry are left out.
 */
public final class HuggingFaceWeights implements ModelTensors {
    static final String FILE = "model.safetensors";
    static final String PREFIX = "transformer.";

    private final SafetensorsFile file;
    private final Map<String, StoredTensor> tensors;

    private HuggingFaceWeights(SafetensorsFile file, Map<String, StoredTensor> tensors) {
        this.file = file;
        this.tensors = Collections.unmodifiableMap(tensors);
    }

    /**
     * Opens weights.
     *
     * @param path a safetensors file, or a folder with {@code model.safetensors}
     * @throws StoredFileException if it cannot be read
     */
    public static HuggingFaceWeights open(Path path) {
        SafetensorsFile file =
                SafetensorsFile.open(Files.isDirectory(path) ? path.resolve(FILE) : path);
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
        return Files.exists(folder.resolve(FILE));
    }

    private static String bareName(String name) {
        return name.startsWith(PREFIX) ? name.substring(PREFIX.length()) : name;
    }

    private static boolean isMask(String name) {
        return name.endsWith(".attn.bias") || name.endsWith(".attn.masked_bias");
    }

    /** Returns the model's shape, if there is a {@code config.json} next to the weights. */
    public Optional<ModelConfig> config() {
        Path config = file.path().resolveSibling(ModelConfig.FILE);
        return Files.exists(config) ? Optional.of(ModelConfig.read(config)) : Optional.empty();
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
