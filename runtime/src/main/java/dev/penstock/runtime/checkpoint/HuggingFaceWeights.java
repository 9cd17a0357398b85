package dev.penstock.runtime.checkpoint;

import dev.penstock.actors.spi.TensorPiece;
import dev.penstock.runtime.model.family.Families;
import dev.penstock.runtime.model.family.Family;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.model.family.StoredPart;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.safetensors.StoredTensor;
import dev.penstock.runtime.safetensors.StoredTensors;
import dev.penstock.runtime.safetensors.TensorFacts;
import dev.penstock.runtime.safetensors.TensorSource;
import dev.penstock.runtime.weights.WeightsFiles;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/**
 * Weights in safetensors files as transformers writes them, F32, F16 or BF16. A {@code config.json}
 * beside them says of which family they are; without one they are a GPT-2's. Tensors are seen as
 * the parameters that they make up; names may have the family's prefix or not, and constants that
 * old files carry are left out.
 */
public final class HuggingFaceWeights implements ModelTensors {
    private final StoredTensors file;
    private final Optional<ModelConfig> config;

    /** By bare name. */
    private final Map<String, StoredTensor> stored;

    /** By the name of the parameter; tensors that make up none are here under their own. */
    private final Map<String, TensorSource> tensors;

    private HuggingFaceWeights(
            StoredTensors file, Optional<ModelConfig> config, Map<String, StoredTensor> stored) {
        this.file = file;
        this.config = config;
        this.stored = stored;
        tensors = Collections.unmodifiableMap(parameters());
    }

    /**
     * Opens weights.
     *
     * @param path as {@link WeightsFiles#open}
     * @throws StoredFileException if they or their {@code config.json} cannot be read
     */
    public static HuggingFaceWeights open(Path path) {
        StoredTensors file = WeightsFiles.open(path);
        try {
            Path beside = file.path().resolveSibling(ModelConfig.FILE);
            Optional<ModelConfig> config =
                    Files.exists(beside) ? Optional.of(ModelConfig.read(beside)) : Optional.empty();
            Family family = config.map(ModelConfig::family).orElse(Families.GPT2);
            Map<String, StoredTensor> stored = new LinkedHashMap<>();
            for (StoredTensor tensor : file.tensors()) {
                String name = family.bareName(tensor.name());
                if (!family.isConstant(name) && stored.put(name, tensor) != null) {
                    throw new StoredFileException(
                            path,
                            "%s exists with and without '%s'".formatted(name, family.prefix()));
                }
            }
            return new HuggingFaceWeights(file, config, stored);
        } catch (StoredFileException e) {
            file.close();
            throw e;
        }
    }

    private Map<String, TensorSource> parameters() {
        Map<String, TensorSource> all = new LinkedHashMap<>();
        Map<String, StoredTensor> left = new LinkedHashMap<>(stored);
        if (config.isPresent() && !config.get().family().equals(Families.GPT2)) {
            Map<String, List<MappedTensor.Part>> parts = new LinkedHashMap<>();
            Map<String, Integer> wanted = new TreeMap<>();
            Map<String, List<Integer>> shapes = new LinkedHashMap<>(config.get().parameters());
            List<StoredPart> known = new ArrayList<>(parts(config.get()));
            for (StoredPart spare : config.get().family().spareParts(config.get().shape())) {
                known.add(spare);
                shapes.put(
                        spare.parameter(),
                        spare.shape().size() == 1
                                ? spare.shape()
                                : List.of(spare.rows(), spare.columns()));
            }
            for (StoredPart part : known) {
                wanted.merge(part.parameter(), 1, Integer::sum);
                StoredTensor found = stored.get(bare(config.get(), part));
                if (found != null && found.shape().equals(part.shape())) {
                    left.remove(bare(config.get(), part));
                    parts.computeIfAbsent(part.parameter(), _ -> new ArrayList<>())
                            .add(new MappedTensor.Part(part, found));
                }
            }
            parts.forEach(
                    (name, found) -> {
                        List<Integer> shape = shapes.get(name);
                        if (shape != null && found.size() == wanted.getOrDefault(name, 0)) {
                            all.put(name, MappedTensor.of(name, shape, found));
                        }
                    });
        }
        left.forEach((name, tensor) -> all.put(name, renamed(name, tensor)));
        return all;
    }

    private static List<StoredPart> parts(ModelConfig model) {
        return model.family().parts(model.shape());
    }

    private static String bare(ModelConfig model, StoredPart part) {
        return model.family().bareName(part.name());
    }

    /** Returns whether a folder has weights under their usual name. */
    public static boolean areIn(Path folder) {
        return WeightsFiles.areIn(folder);
    }

    /** Returns the model's shape, if there is a {@code config.json} next to the weights. */
    public Optional<ModelConfig> config() {
        return config;
    }

    /**
     * Compares the tensors of the file with those of a model.
     *
     * @throws StoredFileException with every tensor that is missing, superfluous or of another
     *     shape, each with the name of its parameter
     */
    @Override
    public void requireParameters(ModelConfig model) {
        Family family = config.map(ModelConfig::family).orElse(Families.GPT2);
        if (!family.equals(model.family())) {
            throw new StoredFileException(
                    path(),
                    "expected a %s, got a %s; try model.family = %s"
                            .formatted(model.family().word(), family.word(), family.word()));
        }
        if (family.equals(Families.GPT2)) {
            ModelTensors.super.requireParameters(model);
        } else {
            new ModelFit(this).parts(model, stored, headIsNew(model)).check();
        }
    }

    /** What was trained on another task has no head for this one. */
    private boolean headIsNew(ModelConfig model) {
        return model.shape().classifies()
                && config.isPresent()
                && !config.get().shape().classifies();
    }

    @Override
    public Path path() {
        return file.path();
    }

    @Override
    public Collection<? extends TensorFacts> tensors() {
        return tensors.values();
    }

    @Override
    public Optional<TensorSource> find(String name) {
        return Optional.ofNullable(tensors.get(name));
    }

    @Override
    public Optional<StoredTensor> read(String name, Arena arena) {
        return find(name)
                .map(
                        tensor ->
                                tensor instanceof MappedTensor mapped
                                        ? mapped.read(arena)
                                        : (StoredTensor) tensor);
    }

    private static StoredTensor renamed(String name, StoredTensor tensor) {
        return new StoredTensor(name, tensor.type(), tensor.shape(), tensor.data());
    }

    @Override
    public Optional<TensorSource> source(String name) {
        return find(name);
    }

    @Override
    public void copy(String name, TensorPiece piece, MemorySegment destination) {
        TensorSource tensor =
                find(name)
                        .orElseThrow(
                                () -> new StoredFileException(path(), "no tensor '" + name + "'"));
        if (tensor instanceof MappedTensor mapped) {
            mapped.copyTo(piece, destination);
        } else {
            ((StoredTensor) tensor).copyTo(piece, destination);
        }
    }

    @Override
    public void requireWhole() {
        file.requireWhole();
    }

    @Override
    public void close() {
        file.close();
    }
}
