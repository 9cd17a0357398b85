package dev.penstock.runtime.config.run;

import dev.penstock.runtime.config.reading.LayerList;
import dev.penstock.runtime.model.family.Families;
import dev.penstock.runtime.model.family.Family;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.model.shape.BlockDesign;
import dev.penstock.runtime.model.shape.EncoderDesign;
import dev.penstock.runtime.model.shape.HeadDesign;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.NormDesign;
import dev.penstock.runtime.model.shape.Positions;
import dev.penstock.runtime.model.shape.RetentionDesign;
import dev.penstock.runtime.safetensors.StoredFileException;
import java.math.BigDecimal;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/** The keys of section {@code model} and the shapes that they stand for, both ways. */
final class ModelKeys {
    /** How activations are called. */
    public enum ActivationWord {
        USUAL,
        GELU_TANH,
        GELU,
        SWIGLU,
        GEGLU
    }

    /** How the decays of heads are called. */
    public enum DecayWord {
        USUAL,
        LARGE,
        NONE
    }

    private ModelKeys() {}

    /**
     * Returns the shape of a section whose values are sound one by one.
     *
     * @throws IllegalArgumentException if together they make no model of the family
     */
    static ModelShape shape(ModelSection section, int vocabulary) {
        Family family =
                Families.find(section.family())
                        .orElseThrow(
                                () ->
                                        new IllegalArgumentException(
                                                "model.family: "
                                                        + Families.unknown(section.family())));
        int most = section.positions().orElse(section.context());
        ModelShape usual =
                family.usual(
                        vocabulary,
                        most,
                        section.width(),
                        section.layers().count(),
                        section.heads(),
                        section.tied());
        BlockDesign block = usual.block();
        HeadDesign heads = block.heads();
        var design =
                new BlockDesign(
                        new NormDesign(
                                block.norm().kind(),
                                section.epsilon().orElse(block.norm().epsilon())),
                        new HeadDesign(
                                heads.queries(),
                                section.keyHeads().orElse(heads.keys()),
                                section.headSize().orElse(heads.size()),
                                heads.norms(),
                                section.attentionByLayer(),
                                retention(section, heads)),
                        block.biases(),
                        activation(section.activation(), block),
                        section.hidden().orElse(block.hidden()),
                        windows(section, heads.retention() != null),
                        encoder(section, block.encoder()));
        return new ModelShape(
                vocabulary,
                section.context(),
                section.width(),
                section.layers().count(),
                design,
                positions(section, usual.positions()),
                section.sharesTable());
    }

    private static @Nullable EncoderDesign encoder(
            ModelSection section, @Nullable EncoderDesign usual) {
        if (usual == null && !section.labels().isEmpty()) {
            throw new IllegalArgumentException(
                    "model.labels: expected none, as only bert and megatron-bert classify texts, got "
                            + section.labels());
        }
        return usual == null ? null : usual.classifying(section.labels());
    }

    private static @Nullable RetentionDesign retention(ModelSection section, HeadDesign usual) {
        RetentionDesign design = usual.retention();
        if (design == null) {
            Map<String, String> said = new LinkedHashMap<>();
            section.valueSize()
                    .ifPresent(columns -> said.put("model.value-size", columns.toString()));
            if (!section.gate()) {
                said.put("model.gate", "false");
            }
            if (section.decay() != DecayWord.USUAL) {
                said.put("model.decay", section.decay().name().toLowerCase(Locale.ROOT));
            }
            if (!said.isEmpty()) {
                throw new IllegalArgumentException(
                        "%s: expected none, as only heads of a retnet have them, got %s"
                                .formatted(
                                        String.join(", ", said.keySet()),
                                        String.join(", ", said.values())));
            }
            return null;
        }
        int size = section.headSize().map(columns -> 2 * columns).orElse(design.valueSize());
        return new RetentionDesign(
                section.valueSize().orElse(size),
                section.gate(),
                switch (section.decay()) {
                    case USUAL -> RetentionDesign.Decay.USUAL;
                    case LARGE -> RetentionDesign.Decay.LARGE;
                    case NONE -> RetentionDesign.Decay.NONE;
                });
    }

    private static BlockDesign.Activation activation(ActivationWord word, BlockDesign usual) {
        return switch (word) {
            case USUAL -> usual.activation();
            case GELU_TANH -> BlockDesign.Activation.GELU_TANH;
            case GELU -> BlockDesign.Activation.GELU;
            case SWIGLU -> BlockDesign.Activation.SWIGLU;
            case GEGLU -> BlockDesign.Activation.GEGLU;
        };
    }

    private static Positions positions(ModelSection section, Positions usual) {
        List<Double> numbers = section.stretch();
        if (!(usual instanceof Positions.Rotary rotary)) {
            if (section.theta().isPresent() || !numbers.isEmpty()) {
                throw new IllegalArgumentException(
                        "model.theta, model.stretch: expected none, as places of %s do not turn heads, got %s and %s"
                                .formatted(
                                        section.family(),
                                        section.theta().map(String::valueOf).orElse("none"),
                                        numbers));
            }
            return usual;
        }
        if (!numbers.isEmpty() && numbers.size() != 4) {
            throw new IllegalArgumentException(
                    "model.stretch: expected [factor, low, high, original context], got "
                            + numbers);
        }
        return new Positions.Rotary(
                rotary.most(),
                section.theta().orElse(rotary.theta()),
                numbers.isEmpty()
                        ? Optional.empty()
                        : Optional.of(
                                new Positions.Stretch(
                                        numbers.get(0),
                                        numbers.get(1),
                                        numbers.get(2),
                                        numbers.get(3).intValue())),
                rotary.neighbours());
    }

    /**
     * @param retains whether layers that nobody says anything of have a retention
     */
    private static List<Integer> windows(ModelSection section, boolean retains) {
        List<Integer> cycle = section.attention().stream().map(ModelKeys::window).toList();
        boolean dense = cycle.stream().allMatch(window -> window == BlockDesign.ALL);
        List<String> kinds = section.layers().kinds();
        if (!kinds.isEmpty() && !section.attention().equals(List.of(LayerList.DENSE))) {
            throw new IllegalArgumentException(
                    "model.attention: expected none, as model.layers says what layers see, got "
                            + section.attention());
        }
        if (!retains && kinds.contains(LayerList.RETENTION)) {
            throw new IllegalArgumentException(
                    "model.layers: expected dense or local(N), as only layers of a retnet have a retention, got "
                            + LayerList.RETENTION);
        }
        if (kinds.isEmpty() && !dense && retains) {
            throw new IllegalArgumentException(
                    "model.attention: expected layers that see all, or a list in model.layers that says which ones attend, as a retention forgets by its decay, got windows "
                            + cycle);
        }
        if (kinds.isEmpty() && dense) {
            return List.of();
        }
        List<Integer> windows =
                IntStream.range(0, section.layers().count())
                        .mapToObj(
                                i ->
                                        kinds.isEmpty()
                                                ? cycle.get(i % cycle.size())
                                                : kinds.get(i).equals(LayerList.RETENTION)
                                                        ? BlockDesign.RETAINED
                                                        : window(kinds.get(i)))
                        .toList();
        boolean usual = windows.stream().allMatch(window -> window == BlockDesign.ALL);
        return usual && !retains ? List.of() : windows;
    }

    private static int window(String kind) {
        Matcher local = LayerList.LOCAL.matcher(kind);
        if (!kind.equals(LayerList.DENSE) && !local.matches()) {
            throw new IllegalArgumentException(
                    "model.attention: expected dense or local(N), such as local(256), got " + kind);
        }
        return kind.equals(LayerList.DENSE) ? BlockDesign.ALL : Integer.parseInt(local.group(1));
    }

    /**
     * Returns the word for the kind of a layer: {@code dense}, {@code local(N)}, {@code retention}.
     */
    private static String kind(BlockDesign block, int layer) {
        return block.retains(layer)
                ? LayerList.RETENTION
                : block.window(layer) == BlockDesign.ALL
                        ? LayerList.DENSE
                        : "local(" + block.window(layer) + ")";
    }

    /**
     * Returns what the keys are of a shape that is described by the family's own configuration, as
     * they would be written. {@code model.context} is not among them.
     */
    static Map<String, Object> of(Family family, ModelShape shape) {
        Map<String, Object> keys = new LinkedHashMap<>();
        BlockDesign block = shape.block();
        HeadDesign heads = block.heads();
        keys.put("model.family", family.word());
        keys.put("model.vocabulary", shape.vocabulary());
        keys.put("model.width", shape.width());
        boolean unlike = heads.retention() != null && !block.windows().isEmpty();
        keys.put("model.layers", unlike ? kinds(shape) : shape.layers());
        keys.put("model.heads", heads.queries());
        keys.put("model.tied", shape.tied() || shape.classifies());
        keys.put("model.key-heads", heads.keys());
        keys.put("model.head-size", heads.size());
        keys.put("model.hidden", block.hidden());
        keys.put("model.attention", attention(shape));
        keys.put("model.attention-by-layer", heads.scaledByLayer());
        RetentionDesign retention = heads.retention();
        if (retention != null) {
            keys.put("model.value-size", retention.valueSize());
            keys.put("model.gate", retention.gated());
            keys.put("model.decay", retention.decay().name().toLowerCase(Locale.ROOT));
        }
        keys.put("model.activation", word(block.activation()));
        keys.put("model.epsilon", block.norm().epsilon());
        if (shape.positions() instanceof Positions.Rotary rotary) {
            keys.put("model.theta", rotary.theta());
            keys.put(
                    "model.stretch",
                    rotary.stretch()
                            .map(s -> List.of(s.factor(), s.low(), s.high(), (double) s.original()))
                            .orElse(List.of()));
        }
        keys.put("model.positions", shape.positions().most());
        EncoderDesign encoder = block.encoder();
        if (encoder != null && encoder.classifies()) {
            keys.put("model.labels", encoder.labels());
        }
        return keys;
    }

    private static String word(BlockDesign.Activation activation) {
        return switch (activation) {
            case GELU_TANH -> "gelu-tanh";
            case GELU -> "gelu";
            case SWIGLU -> "swiglu";
            case GEGLU -> "geglu";
        };
    }

    private static List<String> attention(ModelShape shape) {
        if (shape.block().heads().retention() != null) { // which model.layers tells
            return List.of(LayerList.DENSE);
        }
        List<String> kinds = kinds(shape);
        return kinds.stream().distinct().count() == 1 ? List.of(kinds.getFirst()) : kinds;
    }

    /** Returns the kind of each layer. */
    static List<String> kinds(ModelShape shape) {
        return IntStream.range(0, shape.layers())
                .mapToObj(layer -> kind(shape.block(), layer))
                .toList();
    }

    /** Returns whether two values mean the same, however their numbers are written. */
    static boolean isSame(Object given, Object told) {
        if (given instanceof List<?> some && told instanceof List<?> others) {
            Optional<List<String>> kinds = kinds(some);
            if (kinds.isPresent()) {
                return kinds.equals(kinds(others));
            }
            return some.size() == others.size()
                    && IntStream.range(0, some.size())
                            .allMatch(i -> isSame(some.get(i), others.get(i)));
        }
        if (told instanceof Number) {
            try { // text too: so numbers come from the environment
                var number = new BigDecimal(given.toString().strip());
                return number.compareTo(new BigDecimal(told.toString())) == 0;
            } catch (NumberFormatException e) {
                return false;
            }
        }
        return given.toString().equals(told.toString());
    }

    private static Optional<List<String>> kinds(List<?> entries) {
        return LayerList.of(entries.stream().map(String::valueOf).toList()).map(LayerList::kinds);
    }

    /** Returns a model that is described in a file or folder, if that can be read. */
    static Optional<ModelConfig> readable(Path from) {
        try {
            return Optional.of(ModelConfig.read(file(from)));
        } catch (StoredFileException e) {
            return Optional.empty();
        }
    }

    /** Returns the file that is meant by a path. */
    static Path file(Path from) {
        return Files.isDirectory(from) ? from.resolve(ModelConfig.FILE) : from;
    }
}
