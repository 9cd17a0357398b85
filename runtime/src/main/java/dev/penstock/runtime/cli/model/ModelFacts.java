package dev.penstock.runtime.cli.model;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.penstock.runtime.checkpoint.CheckpointFolders;
import dev.penstock.runtime.checkpoint.CheckpointReader;
import dev.penstock.runtime.checkpoint.SavedCheckpoint;
import dev.penstock.runtime.gguf.GgufFile;
import dev.penstock.runtime.gguf.GgufValue;
import dev.penstock.runtime.inference.TrainedModel;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.safetensors.StoredTensors;
import dev.penstock.runtime.safetensors.TensorFacts;
import dev.penstock.runtime.weights.WeightsFiles;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.regex.Pattern;

/**
 * What a model is made of.
 *
 * @param path the file, or the folder
 * @param form what it is stored as
 * @param family as it calls itself; empty if it does not say
 * @param parameters elements of all tensors that are trained; a head that repeats the embedding
 *     counts once
 * @param bytes of all tensors
 * @param config what it says about itself
 * @param tensors in the order of the file
 * @param problems what keeps Penstock from training or running it
 */
record ModelFacts(
        String path,
        String form,
        String family,
        long parameters,
        long bytes,
        Map<String, Object> config,
        List<TensorRow> tensors,
        List<String> problems) {
    private static final Pattern MASK = Pattern.compile(".*\\.attn\\.(masked_)?bias");
    private static final String HEAD = "lm_head.weight";
    private static final ObjectMapper JSON = new ObjectMapper();

    /** A tensor as it is stored. */
    record TensorRow(String name, String type, List<Long> shape) {
        long elements() {
            return shape.stream().reduce(1L, (a, b) -> a * b);
        }
    }

    /**
     * Looks at a model.
     *
     * @param notes receives what was passed over, such as a damaged checkpoint
     * @throws StoredFileException if there is none, or its files are damaged
     */
    static ModelFacts of(Path path, Consumer<String> notes) {
        if (Files.isRegularFile(path) && GgufFile.isOne(path)) {
            return ofGguf(path);
        }
        boolean isIndexOrFile = Files.isRegularFile(path);
        return isIndexOrFile || WeightsFiles.areIn(path)
                ? ofWeights(path, notes)
                : ofCheckpoint(CheckpointFolders.find(path, notes));
    }

    private static ModelFacts ofGguf(Path path) {
        GgufFile gguf = GgufFile.read(path);
        Map<String, Object> config = new LinkedHashMap<>();
        gguf.metadata().forEach((key, value) -> config.put(key, plain(value)));
        List<TensorRow> rows =
                gguf.tensors().stream()
                        .map(t -> new TensorRow(t.name(), t.type().name(), t.shape()))
                        .toList();
        return new ModelFacts(
                path.toString(),
                "GGUF version " + gguf.version(),
                String.valueOf(config.getOrDefault("general.architecture", "")),
                rows.stream()
                        .filter(row -> !row.name().equals("rope_freqs.weight"))
                        .mapToLong(TensorRow::elements)
                        .sum(),
                gguf.tensors().stream().mapToLong(GgufFile.Entry::bytes).sum(),
                config,
                rows,
                List.of());
    }

    private static Object plain(GgufValue value) {
        return switch (value) {
            case GgufValue.Count count -> count.value();
            case GgufValue.Real real -> real.value();
            case GgufValue.Flag flag -> flag.value();
            case GgufValue.Text text -> text.value();
            case GgufValue.Texts texts -> texts.values();
            case GgufValue.Numbers numbers -> numbers.values();
            case GgufValue.Reals reals -> reals.values();
            case GgufValue.Skipped skipped ->
                    "%d of %s".formatted(skipped.length(), skipped.what());
        };
    }

    private static ModelFacts ofWeights(Path path, Consumer<String> notes) {
        List<String> problems = new ArrayList<>();
        try (StoredTensors weights = WeightsFiles.open(path)) {
            Path file = weights.path().resolveSibling(ModelConfig.FILE);
            Map<String, Object> config = Files.exists(file) ? read(file) : Map.of();
            List<TensorRow> rows = rows(weights.tensors());
            try (TrainedModel model = TrainedModel.open(path, notes)) {
                model.config();
            } catch (StoredFileException e) {
                problems.add(String.valueOf(e.getMessage()));
            }
            String family = String.valueOf(config.getOrDefault("model_type", ""));
            boolean tied =
                    Boolean.TRUE.equals(
                            config.getOrDefault("tie_word_embeddings", family.equals("gpt2")));
            boolean torch =
                    weights.path().toString().matches(".*\\.(bin|pt|pth)(\\.index\\.json)?");
            return new ModelFacts(
                    weights.path().toString(),
                    torch ? "torch" : "safetensors",
                    family,
                    weights.tensors().stream()
                            .filter(TensorFacts::isFloatingPoint)
                            .filter(t -> !MASK.matcher(t.name()).matches())
                            .filter(t -> !repeats(tied, t.name(), weights))
                            .mapToLong(TensorFacts::elements)
                            .sum(),
                    bytes(weights),
                    config,
                    rows,
                    problems);
        }
    }

    /** Tensors that share their memory count once. */
    private static long bytes(StoredTensors weights) {
        Map<Long, Long> byAddress = new HashMap<>();
        weights.tensors().forEach(t -> byAddress.merge(t.data().address(), t.bytes(), Math::max));
        return byAddress.values().stream().mapToLong(Long::longValue).sum();
    }

    /** Whether it is a head that is the embedding once more. */
    private static boolean repeats(boolean tied, String name, StoredTensors weights) {
        return tied && name.equals(HEAD) && weights.tensors().size() > 1;
    }

    private static Map<String, Object> read(Path config) {
        try {
            JsonNode root = JSON.readTree(Files.readString(config, StandardCharsets.UTF_8));
            Map<String, Object> facts = new LinkedHashMap<>();
            root.properties()
                    .forEach(
                            entry ->
                                    facts.put(
                                            entry.getKey(),
                                            JSON.convertValue(entry.getValue(), Object.class)));
            return facts;
        } catch (JsonProcessingException e) {
            throw new StoredFileException(config, "not JSON: " + e.getOriginalMessage(), e);
        } catch (IOException e) {
            throw StoredFileException.of(config, "read the model's shape", e);
        }
    }

    private static ModelFacts ofCheckpoint(SavedCheckpoint checkpoint) {
        Map<String, Object> config = read(checkpoint.path().resolve(ModelConfig.FILE));
        List<String> problems = new ArrayList<>();
        try (CheckpointReader reader = checkpoint.read()) {
            List<? extends TensorFacts> parameters =
                    reader.tensors().stream()
                            .filter(tensor -> !tensor.name().startsWith("optimizer."))
                            .toList();
            try {
                reader.requireParameters(checkpoint.manifest().model());
            } catch (StoredFileException e) {
                problems.add(String.valueOf(e.getMessage()));
            }
            return new ModelFacts(
                    checkpoint.path().toString(),
                    "checkpoint of step " + checkpoint.step(),
                    String.valueOf(config.getOrDefault("model_type", "")),
                    parameters.stream().mapToLong(TensorFacts::elements).sum(),
                    parameters.stream().mapToLong(t -> t.elements() * t.type().bytes()).sum(),
                    config,
                    rows(parameters),
                    problems);
        }
    }

    private static List<TensorRow> rows(Iterable<? extends TensorFacts> tensors) {
        List<TensorRow> rows = new ArrayList<>();
        for (TensorFacts tensor : tensors) {
            List<Long> shape = tensor.shape().stream().map(Integer::longValue).toList();
            rows.add(new TensorRow(tensor.name(), tensor.type().name(), shape));
        }
        return rows;
    }
}
