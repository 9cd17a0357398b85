package dev.penstock.runtime.checkpoint;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.penstock.actors.spi.TensorPiece;
import dev.penstock.runtime.model.family.AdapterParts;
import dev.penstock.runtime.model.family.Families;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.model.family.StoredPart;
import dev.penstock.runtime.model.shape.Adapters;
import dev.penstock.runtime.safetensors.JsonMistake;
import dev.penstock.runtime.safetensors.SafetensorsFile;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.safetensors.StoredTensor;
import dev.penstock.runtime.safetensors.TensorSource;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * An adapter in the format of PEFT: {@code adapter_config.json} and {@code
 * adapter_model.safetensors} in a folder. Its tensors are seen as the parameters that they are.
 */
public final class PeftAdapter implements AutoCloseable {
    /** The file of the settings. */
    public static final String CONFIG = "adapter_config.json";

    /** The file of the weights. */
    public static final String WEIGHTS = "adapter_model.safetensors";

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final long MAX_BYTES = 4 << 20;

    /** Characters of a value in a message. */
    private static final int SHOWN = 80;

    private final Path folder;
    private final JsonNode settings;
    private final SafetensorsFile file;

    /** By the name of the parameter; filled when the model is known. */
    private final Map<String, MappedTensor> tensors = new HashMap<>();

    private PeftAdapter(Path folder, JsonNode settings, SafetensorsFile file) {
        this.folder = folder;
        this.settings = settings;
        this.file = file;
    }

    /**
     * Opens an adapter; the caller closes it.
     *
     * @throws StoredFileException if there is none, or it is not one of LoRA's
     */
    public static PeftAdapter open(Path folder) {
        Path config = folder.resolve(CONFIG);
        try {
            if (Files.size(config) > MAX_BYTES) {
                throw new StoredFileException(config, "too large to be an adapter's settings");
            }
            JsonNode settings = JSON.readTree(Files.readString(config, StandardCharsets.UTF_8));
            if (!settings.isObject()) {
                throw new StoredFileException(
                        config,
                        "expected a JSON object, got %s"
                                .formatted(
                                        settings.isMissingNode()
                                                ? "an empty file"
                                                : shown(settings)));
            }
            return new PeftAdapter(folder, settings, SafetensorsFile.open(folder.resolve(WEIGHTS)));
        } catch (JsonProcessingException e) {
            throw new StoredFileException(config, "not JSON: " + JsonMistake.words(e), e);
        } catch (IOException e) {
            throw StoredFileException.of(config, "read the adapter's settings", e);
        }
    }

    /**
     * Compares with the adapters of a model; to be called before {@link #fill}.
     *
     * @throws StoredFileException with everything that differs, that Penstock does not compute, or
     *     that is no number
     */
    public void requireFit(ModelConfig model) {
        Adapters adapters =
                model.fineTuning()
                        .adapters()
                        .orElseThrow(
                                () -> new StoredFileException(folder, "the run has no adapters"));
        List<String> problems = problems(adapters.rank(), adapters.alpha());
        compare(problems, model, adapters);
        require(problems);
    }

    /**
     * Compares settings with those of a run whose model is not known.
     *
     * @throws StoredFileException as {@link #requireFit}
     */
    public void requireSettings(int rank, double alpha) {
        require(problems(rank, alpha));
    }

    private void require(List<String> problems) {
        if (!problems.isEmpty()) {
            throw new StoredFileException(
                    folder, "not the adapter of this run:\n  " + String.join("\n  ", problems));
        }
    }

    private List<String> problems(int rank, double alpha) {
        List<String> problems = new ArrayList<>();
        expect(problems, "peft_type", "LORA");
        expect(problems, "bias", "none");
        for (String plain : List.of("use_dora", "use_rslora", "lora_bias")) {
            refuse(problems, plain);
        }
        for (String unset :
                List.of(
                        "rank_pattern",
                        "alpha_pattern",
                        "modules_to_save",
                        "layers_to_transform",
                        "megatron_config",
                        "layer_replication",
                        "trainable_token_indices",
                        "target_parameters",
                        "exclude_modules")) {
            refuse(problems, unset);
        }
        same(problems, "r", "fine-tune.rank", rank, Integer.toString(rank));
        same(problems, "lora_alpha", "fine-tune.alpha", alpha, Double.toString(alpha));
        return problems;
    }

    private void same(List<String> problems, String name, String key, double own, String shown) {
        JsonNode value = settings.path(name);
        if (!value.isNumber() || value.asDouble() != own) {
            problems.add(
                    "%s: the adapter has %s, the run has %s = %s"
                            .formatted(name, shown(value), key, shown));
        }
    }

    private static String shown(JsonNode value) {
        String text = value.isMissingNode() ? "none" : value.toString();
        return text.length() <= SHOWN ? text : text.substring(0, SHOWN) + "..";
    }

    private void expect(List<String> problems, String key, String value) {
        if (!settings.path(key).asText(value).equals(value)) {
            problems.add(
                    "%s: expected %s, got %s".formatted(key, value, shown(settings.path(key))));
        }
    }

    /** Nothing, false, null and empty are what Penstock computes. */
    private void refuse(List<String> problems, String key) {
        JsonNode value = settings.path(key);
        boolean unset =
                value.isMissingNode()
                        || value.isNull()
                        || (value.isBoolean() && !value.booleanValue())
                        || (value.isContainerNode() && value.isEmpty());
        if (!unset) {
            problems.add("%s: expected none, got %s".formatted(key, shown(value)));
        }
    }

    private void compare(List<String> problems, ModelConfig model, Adapters adapters) {
        Map<String, StoredTensor> left = new LinkedHashMap<>();
        file.tensors().forEach(tensor -> left.put(tensor.name(), tensor));
        for (StoredPart part : AdapterParts.of(model.family(), model.shape(), adapters)) {
            StoredTensor found = left.remove(part.name());
            if (found == null || !found.shape().equals(part.shape()) || !found.isFloatingPoint()) {
                problems.add(
                        "%s: expected real numbers %s, got %s"
                                .formatted(
                                        part.name(),
                                        part.shape(),
                                        found == null
                                                ? "nothing"
                                                : found.type() + " " + found.shape()));
            } else {
                requireFinite(problems, found);
                tensors.put(
                        part.parameter(),
                        MappedTensor.of(
                                part.parameter(),
                                List.of(part.rows(), part.columns()),
                                List.of(new MappedTensor.Part(part, found))));
            }
        }
        left.forEach(
                (name, tensor) ->
                        problems.add(
                                "%s: expected none, got %s; see fine-tune.targets"
                                        .formatted(name, tensor.shape())));
    }

    /** A run would meet it in its first step, and could not tell where it comes from. */
    private static void requireFinite(List<String> problems, StoredTensor tensor) {
        for (long i = 0; i < tensor.elements(); i++) {
            double value = tensor.real(i);
            if (!Double.isFinite(value)) {
                problems.add(
                        "%s in %s: expected finite numbers, got %s at index %d"
                                .formatted(tensor.name(), WEIGHTS, value, i));
                return;
            }
        }
    }

    /** Copies a piece of a parameter of the adapter; false for all others. */
    public boolean fill(String name, TensorPiece piece, MemorySegment destination) {
        MappedTensor tensor = tensors.get(name);
        if (tensor != null) {
            tensor.copyTo(piece, destination);
        }
        return tensor != null;
    }

    /**
     * Writes the adapter of a model; files of the same names are replaced.
     *
     * @param weights the file, {@code FOLDER/adapter_model.safetensors}
     * @param base what the settings call the model beside which the adapter stands
     * @return the file
     * @throws StoredFileException if the model has no adapters, or they cannot be written
     */
    public static List<Path> write(
            Path weights, ModelConfig model, ModelTensors source, String base) {
        Adapters adapters =
                model.fineTuning()
                        .adapters()
                        .orElseThrow(
                                () ->
                                        new StoredFileException(
                                                source.path(),
                                                "expected a model with an adapter, got one without"));
        source.requireParameters(model);
        List<TensorSource> tensors = new ArrayList<>();
        for (StoredPart part : AdapterParts.of(model.family(), model.shape(), adapters)) {
            tensors.add(PublishedPart.of(part, source));
        }
        return WeightsExport.write(
                weights,
                tensors,
                Map.of(CONFIG, settings(model, adapters, base)),
                WeightsExport.Form.AS_STORED,
                source::requireWhole);
    }

    private static String settings(ModelConfig model, Adapters adapters, String base) {
        ObjectNode json = JSON.createObjectNode();
        json.putObject("alpha_pattern");
        json.putNull("auto_mapping");
        json.put("base_model_name_or_path", base);
        json.put("bias", "none");
        json.put("fan_in_fan_out", model.family().equals(Families.GPT2));
        json.put("inference_mode", true);
        json.put("init_lora_weights", true);
        json.putNull("layers_pattern");
        json.putNull("layers_to_transform");
        if (adapters.alpha() == Math.rint(adapters.alpha())) {
            json.put("lora_alpha", (long) adapters.alpha());
        } else {
            json.put("lora_alpha", adapters.alpha());
        }
        json.put("lora_bias", false);
        json.put("lora_dropout", adapters.dropout());
        json.putNull("modules_to_save");
        json.put("peft_type", "LORA");
        json.put("r", adapters.rank());
        json.putObject("rank_pattern");
        json.putNull("revision");
        var targets = json.putArray("target_modules");
        AdapterParts.targets(model.family(), model.shape(), adapters).forEach(targets::add);
        json.put("task_type", "CAUSAL_LM");
        json.put("use_dora", false);
        json.put("use_rslora", false);
        return json.toPrettyString() + "\n";
    }

    @Override
    public void close() {
        file.close();
    }
}
