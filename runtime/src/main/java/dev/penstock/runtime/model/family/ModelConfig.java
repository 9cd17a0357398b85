package dev.penstock.runtime.model.family;

import com.fasterxml.jackson.annotation.JsonCreator;
import com.fasterxml.jackson.annotation.JsonValue;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.penstock.runtime.model.shape.BlockDesign;
import dev.penstock.runtime.model.shape.EncoderDesign;
import dev.penstock.runtime.model.shape.FineTuning;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.Positions;
import dev.penstock.runtime.model.shape.RetentionDesign;
import dev.penstock.runtime.safetensors.JsonMistake;
import dev.penstock.runtime.safetensors.StoredFileException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;

/**
 * A model as {@code config.json} of Hugging Face's transformers describes it. What such a file says
 * besides, such as the numbers of special tokens, is kept as it was.
 */
public final class ModelConfig {
    /** The name of the file next to a model. */
    public static final String FILE = "config.json";

    private static final String FINE_TUNING = "fine_tuning";
    private static final ObjectMapper JSON = new ObjectMapper();

    /** Far more than any such file has. */
    private static final long MAX_BYTES = 4 << 20;

    private final Family family;
    private final ModelShape shape;
    private final ObjectNode json;
    private final FineTuning tuning;

    private ModelConfig(Family family, ModelShape shape, ObjectNode json, FineTuning tuning) {
        this.family = family;
        this.shape = shape;
        this.json = json;
        this.tuning = tuning;
    }

    /** Describes a model of a family. */
    public static ModelConfig of(Family family, ModelShape shape) {
        ObjectNode json = JSON.createObjectNode();
        family.describe(shape, json);
        return new ModelConfig(family, shape, json, FineTuning.FULL);
    }

    /**
     * Returns what is left of a shape when a family describes it and reads it again: the same, or
     * what the family has in place of what it does not have.
     */
    public static ModelShape described(Family family, ModelShape shape) {
        ModelConfig config = of(family, shape.withContext(shape.positions().most()));
        return of(Path.of(FILE), config.json).shape.withContext(shape.context());
    }

    /** Describes a GPT-2. */
    public static ModelConfig gpt2(
            int vocabulary, int context, int width, int layers, int heads, boolean tied) {
        return of(Families.GPT2, ModelShape.gpt2(vocabulary, context, width, layers, heads, tied));
    }

    /**
     * Reads a {@code config.json}.
     *
     * @throws StoredFileException if it is not one, or asks for something that Penstock does not
     *     compute; lists everything at once
     */
    public static ModelConfig read(Path file) {
        try {
            if (Files.size(file) > MAX_BYTES) {
                throw new StoredFileException(file, "too large to be a model's configuration");
            }
            return of(file, JSON.readTree(Files.readString(file, StandardCharsets.UTF_8)));
        } catch (JsonProcessingException e) {
            throw new StoredFileException(file, "not JSON: " + JsonMistake.words(e), e);
        } catch (IOException e) {
            throw StoredFileException.of(file, "read the model's shape", e);
        }
    }

    /**
     * Same as {@link #read} for content that was read before.
     *
     * @param file for messages
     */
    public static ModelConfig of(Path file, JsonNode root) {
        if (!(root instanceof ObjectNode object)) {
            throw new StoredFileException(
                    file, "expected a JSON object, got " + root.getNodeType());
        }
        List<String> problems = new ArrayList<>();
        var config = new ConfigJson(object, problems);
        String word = config.modelType().orElse("nothing");
        Family family =
                Families.find(word)
                        .orElseThrow(
                                () ->
                                        new StoredFileException(
                                                file, "model_type: " + Families.unknown(word)));
        ModelShape shape = null;
        try {
            shape = family.shape(config);
        } catch (IllegalArgumentException e) {
            if (problems.isEmpty()) {
                problems.add(String.valueOf(e.getMessage()));
            }
        }
        if (shape != null) { // else some keys may not have been asked for
            config.refuseOthers();
        }
        if (shape == null || !problems.isEmpty()) {
            throw new StoredFileException(
                    file,
                    "not a %s that Penstock supports: %s"
                            .formatted(family.word(), String.join("; ", problems)));
        }
        return new ModelConfig(family, shape, object.deepCopy(), FineTuning.FULL);
    }

    /** Returns the same model with other parameters trained, and with the adapters for that. */
    public ModelConfig training(FineTuning other) {
        return new ModelConfig(family, shape, json, other);
    }

    /**
     * Returns the same model, described as one that is trained with dropout, as far as the family's
     * files say that. They are left as they are where nothing is dropped.
     *
     * @param probability see {@link Family#describeDropout}
     */
    public ModelConfig dropping(double probability) {
        if (probability == 0) {
            return this;
        }
        ObjectNode other = json.deepCopy();
        family.describeDropout(probability, other);
        return new ModelConfig(family, shape, other, tuning);
    }

    /** Returns the model without adapters, everything in it trained. */
    public ModelConfig base() {
        return training(FineTuning.FULL);
    }

    /** Returns what is trained. */
    public FineTuning fineTuning() {
        return tuning;
    }

    public Family family() {
        return family;
    }

    /** Returns the shape, for the longest sequences that the model can read. */
    public ModelShape shape() {
        return shape;
    }

    /**
     * Returns what manifests of checkpoints say: the sizes of a GPT-2 of the usual kind, as they
     * always did, or the content of a {@code config.json}.
     */
    @JsonValue
    ObjectNode inManifest() {
        ObjectNode node = withoutTuning();
        if (!tuning.equals(FineTuning.FULL)) {
            node.set(FINE_TUNING, TuningJson.write(tuning));
        }
        return node;
    }

    private ObjectNode withoutTuning() {
        if (!isUsualGpt2()) {
            return json.deepCopy();
        }
        return JSON.createObjectNode()
                .put("vocabulary", shape.vocabulary())
                .put("context", shape.context())
                .put("width", shape.width())
                .put("layers", shape.layers())
                .put("heads", shape.heads())
                .put("tied", shape.tied());
    }

    private boolean isUsualGpt2() {
        if (!family.equals(Families.GPT2)) {
            return false;
        }
        ModelConfig usual =
                gpt2(
                        shape.vocabulary(),
                        shape.context(),
                        shape.width(),
                        shape.layers(),
                        shape.heads(),
                        shape.tied());
        return json.equals(usual.json);
    }

    /** Reads what {@link #inManifest} says. */
    @JsonCreator(mode = JsonCreator.Mode.DELEGATING)
    static ModelConfig ofManifest(ObjectNode node) {
        ObjectNode rest = node.deepCopy();
        JsonNode tuning = rest.remove(FINE_TUNING);
        ModelConfig model = withoutTuning(rest);
        return tuning == null ? model : model.training(TuningJson.read(tuning));
    }

    private static ModelConfig withoutTuning(ObjectNode node) {
        return node.has("model_type")
                ? of(Path.of("manifest.json"), node)
                : gpt2(
                        node.path("vocabulary").intValue(),
                        node.path("context").intValue(),
                        node.path("width").intValue(),
                        node.path("layers").intValue(),
                        node.path("heads").intValue(),
                        node.path("tied").booleanValue());
    }

    /** Returns the text of a {@code config.json}. */
    public String toJson() {
        return json.toPrettyString() + "\n";
    }

    /**
     * Returns every parameter's name and shape, in the order of the model, then those of its
     * adapters.
     */
    public Map<String, List<Integer>> parameters() {
        Map<String, List<Integer>> shapes = new LinkedHashMap<>();
        for (StoredPart part : family.parts(shape)) {
            int columns = part.firstColumn() + part.columns();
            shapes.put(
                    part.parameter(),
                    part.shape().size() == 1 ? List.of(columns) : List.of(part.rows(), columns));
        }
        tuning.adapters()
                .ifPresent(
                        adapters ->
                                AdapterParts.of(family, shape, adapters)
                                        .forEach(
                                                part ->
                                                        shapes.put(
                                                                part.parameter(),
                                                                List.of(
                                                                        part.rows(),
                                                                        part.columns()))));
        return shapes;
    }

    /** Returns name and shape of every parameter that is trained. */
    public Map<String, List<Integer>> trained() {
        Map<String, List<Integer>> shapes = parameters();
        shapes.keySet().removeIf(name -> !tuning.trains(name));
        return shapes;
    }

    /**
     * Returns what these weights are computed with that another description has otherwise, though
     * tensors of both may have the same names and shapes: the same weights are another model then,
     * which nothing but a slightly higher loss would show. Lengths of sequences may differ.
     */
    public List<String> differences(ModelConfig wanted) {
        List<String> found = new ArrayList<>();
        BlockDesign mine = shape.block();
        BlockDesign theirs = wanted.shape.block();
        differ(found, "model.family", family.word(), wanted.family.word());
        differ(found, "model.heads", mine.heads().queries(), theirs.heads().queries());
        differ(found, "model.key-heads", mine.heads().keys(), theirs.heads().keys());
        differ(found, "model.head-size", mine.heads().size(), theirs.heads().size());
        differ(
                found,
                "model.attention-by-layer",
                mine.heads().scaledByLayer(),
                theirs.heads().scaledByLayer());
        differ(found, "token types", types(mine), types(theirs));
        if (!labels(mine).isEmpty()) { // otherwise the head is a new one
            differ(found, "model.labels", labels(mine), labels(theirs));
        }
        differ(found, "model.gate and model.decay", retention(mine), retention(theirs));
        differ(found, "model.epsilon", mine.norm().epsilon(), theirs.norm().epsilon());
        differ(found, "model.activation", word(mine), word(theirs));
        differ(
                found,
                "windows of model.attention, or kinds in model.layers",
                windows(),
                wanted.windows());
        if (shape.positions() instanceof Positions.Rotary turned
                && wanted.shape.positions() instanceof Positions.Rotary other) {
            differ(found, "model.theta", turned.theta(), other.theta());
            differ(found, "model.stretch", numbers(turned), numbers(other));
        }
        return found;
    }

    private static String retention(BlockDesign block) {
        RetentionDesign design = block.heads().retention();
        return design == null
                ? "no retention"
                : "%s and %s"
                        .formatted(design.gated(), design.decay().name().toLowerCase(Locale.ROOT));
    }

    private static int types(BlockDesign block) {
        EncoderDesign encoder = block.encoder();
        return encoder == null ? 0 : encoder.tokenTypes();
    }

    private static List<String> labels(BlockDesign block) {
        EncoderDesign encoder = block.encoder();
        return encoder == null ? List.of() : encoder.labels();
    }

    /** Returns whether a parameter is of the head, see {@link Family#isOfHead}. */
    public boolean isOfHead(String parameter) {
        return family.parts(shape).stream()
                .filter(part -> part.parameter().equals(parameter))
                .anyMatch(part -> family.isOfHead(family.bareName(part.name())));
    }

    private static String word(BlockDesign block) {
        return block.activation().name().toLowerCase(Locale.ROOT).replace('_', '-');
    }

    private static String numbers(Positions.Rotary turned) {
        return turned.stretch()
                .map(s -> "[%s, %s, %s, %d]".formatted(s.factor(), s.low(), s.high(), s.original()))
                .orElse("[]");
    }

    private List<Integer> windows() {
        BlockDesign block = shape.block();
        return block.hasWindows() || block.heads().retention() != null
                ? block.windows()
                : List.of();
    }

    private static void differ(List<String> found, String key, Object mine, Object wanted) {
        if (!mine.equals(wanted)) {
            found.add("%s: the weights have %s, the run has %s".formatted(key, mine, wanted));
        }
    }

    /** Two are equal if they describe the same model of the same family. */
    @Override
    public boolean equals(Object other) {
        return other instanceof ModelConfig config
                && family.equals(config.family)
                && shape.equals(config.shape)
                && tuning.equals(config.tuning);
    }

    @Override
    public int hashCode() {
        return Objects.hash(family, shape, tuning);
    }

    @Override
    public String toString() {
        return family.word() + " " + shape;
    }
}
