package dev.penstock.runtime.config.run;

import static java.util.Objects.requireNonNull;

import dev.penstock.runtime.config.reading.Conflict;
import dev.penstock.runtime.config.run.FineTuneSection.Method;
import dev.penstock.runtime.model.family.Families;
import dev.penstock.runtime.model.family.Family;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.model.shape.AdapterPlace;
import dev.penstock.runtime.model.shape.Adapters;
import dev.penstock.runtime.model.shape.FineTuning;
import dev.penstock.runtime.model.shape.ModelShape;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Whether the values of section {@code model} make a model of the family, and those of {@code
 * fine-tune} fit it.
 */
final class ModelChecks {
    private static final String GAIN = ".weight";
    private static final String BIAS = ".bias";

    /** What says which keys make no model, such as {@code model.layers: expected A, got B}. */
    private static final Pattern OF_KEYS =
            Pattern.compile("(model\\.[\\w-]+(?:, model\\.[\\w-]+)*): expected (.+), got (.+)");

    private ModelChecks() {}

    /**
     * Returns what does not fit together.
     *
     * @param tokens of the tokenizer
     */
    static List<Conflict> of(ModelSection model, int tokens) {
        List<Conflict> conflicts = new ArrayList<>();
        Optional<Family> family = Families.find(model.family());
        if (family.isEmpty()) {
            conflicts.add(
                    new Conflict(
                            List.of("model.family"),
                            "one of " + String.join(", ", Families.words()),
                            model.family(),
                            Families.nearest(model.family())
                                    .map(near -> "try " + near)
                                    .orElse("")));
            return conflicts;
        }
        if (model.positions().orElse(model.context()) < model.context()) {
            conflicts.add(
                    new Conflict(
                            List.of("model.context", "model.positions"),
                            "at most model.positions = " + model.positions().orElseThrow(),
                            String.valueOf(model.context()),
                            "use shorter sequences"));
            return conflicts;
        }
        try {
            ModelShape shape = model.shape(tokens);
            conflicts.addAll(unlike(family.get(), shape, !model.layers().entries().isEmpty()));
        } catch (IllegalArgumentException e) {
            conflicts.add(noModel(model.family(), String.valueOf(e.getMessage())));
        }
        return conflicts;
    }

    /** A conflict of the keys that the message names, or of those that a shape has in any case. */
    private static Conflict noModel(String family, String message) {
        Matcher told = OF_KEYS.matcher(message);
        if (!told.matches()) {
            return new Conflict(
                    List.of("model.heads", "model.family"),
                    "a model of family " + family,
                    "none: " + message,
                    "change what does not fit");
        }
        List<String> keys = new ArrayList<>(List.of(told.group(1).split(", ")));
        keys.add("model.family");
        return new Conflict(
                keys, told.group(2), told.group(3), "change it, or try another model.family");
    }

    /** What the family's own configuration cannot say of a shape, the family does not have. */
    private static List<Conflict> unlike(Family family, ModelShape shape, boolean listed) {
        List<Conflict> conflicts = new ArrayList<>();
        Map<String, Object> possible = ModelKeys.of(family, ModelConfig.described(family, shape));
        ModelKeys.of(family, shape)
                .forEach(
                        (key, value) -> {
                            Object told = possible.get(key);
                            if (!value.equals(told)) {
                                conflicts.add(
                                        new Conflict(
                                                List.of(
                                                        listed && key.equals("model.attention")
                                                                ? "model.layers"
                                                                : key,
                                                        "model.family"),
                                                "%s, as models of family %s have it"
                                                        .formatted(told, family.word()),
                                                value.toString(),
                                                "leave it out, or try another model.family"));
                            }
                        });
        return conflicts;
    }

    /**
     * Returns what of section {@code fine-tune} does not fit the model or the layout.
     *
     * @param shape of the model
     */
    static List<Conflict> ofTuning(RunConfig config, ModelShape shape) {
        List<Conflict> conflicts = new ArrayList<>();
        boolean full = config.fineTune().method() == Method.FULL;
        if (full && config.fineTune().dropout() > 0) {
            conflicts.add(
                    conflict(
                            "lora, as fine-tune.dropout is of what adapters read",
                            "full",
                            "set it, or leave fine-tune.dropout out",
                            "fine-tune.method",
                            "fine-tune.dropout"));
        }
        if (full && config.fineTune().adapter().isPresent()) {
            conflicts.add(
                    conflict(
                            "lora, as fine-tune.adapter needs fine-tune.method = lora",
                            "full",
                            "set it, or leave fine-tune.adapter out",
                            "fine-tune.method",
                            "fine-tune.adapter"));
        }
        if (!full && shape.block().isMixed()) {
            conflicts.add(
                    conflict(
                            "full where some layers retain and others attend, as an adapter has as many columns in every layer",
                            "lora",
                            "train everything, or freeze parts with fine-tune.freeze",
                            "fine-tune.method",
                            "model.layers"));
            return conflicts;
        }
        if (config.fineTune().frozen() == FineTuneSection.Frozen.INT8) {
            productsReadIntegers(config.device(), conflicts);
        }
        Families.find(config.model().family())
                .ifPresent(
                        family -> {
                            try {
                                config.fineTune().requireKnownTargets(family, shape);
                                ModelConfig model =
                                        ModelConfig.of(family, shape)
                                                .training(config.fineTune().tuning(family, shape));
                                frozenExist(model, conflicts);
                                ranksAreLower(model, conflicts);
                            } catch (IllegalArgumentException e) {
                                conflicts.add(
                                        conflict(
                                                "layers of the model",
                                                "others: " + e.getMessage(),
                                                "take names from the list",
                                                "fine-tune.targets",
                                                "model.family"));
                            }
                        });
        return conflicts;
    }

    private static void productsReadIntegers(DeviceSection device, List<Conflict> conflicts) {
        if (device.kind().isCuda()) {
            conflicts.add(
                    conflict(
                            "auto, float32 or bf16 where device.kind = " + device.kind().word(),
                            "int8",
                            "only CPUs multiply integers: try bf16",
                            "fine-tune.frozen",
                            "device.kind"));
        } else if (device.precision() != DeviceSection.Precision.FLOAT32) {
            conflicts.add(
                    conflict(
                            "auto or float32 where device.precision = "
                                    + device.precision().name().toLowerCase(Locale.ROOT),
                            "int8",
                            "integers are multiplied in float32: try device.precision = float32",
                            "fine-tune.frozen",
                            "device.precision"));
        }
    }

    /** More would only take room: the product of two matrices has no higher rank than either. */
    private static void ranksAreLower(ModelConfig model, List<Conflict> conflicts) {
        int rank = model.fineTuning().adapters().map(Adapters::rank).orElse(0);
        Map<String, List<Integer>> parameters = model.parameters();
        String smallest = "";
        int most = Integer.MAX_VALUE;
        for (AdapterPlace place :
                model.fineTuning().adapters().map(Adapters::places).orElse(List.of())) {
            int rows = requireNonNull(parameters.get(place.inner(0))).getFirst();
            int side = Math.min(rows, place.columns());
            if (side < most) {
                most = side;
                smallest = place.name(0);
            }
        }
        if (rank > most) {
            conflicts.add(
                    conflict(
                            "at most %d, the smaller side of %s".formatted(most, smallest),
                            String.valueOf(rank),
                            "use a smaller rank, or fine-tune.method = full",
                            "fine-tune.rank",
                            "fine-tune.targets",
                            "model.width"));
        }
    }

    private static void frozenExist(ModelConfig model, List<Conflict> conflicts) {
        Set<String> names = model.parameters().keySet();
        for (String pattern : model.fineTuning().freeze()) {
            if (names.stream().noneMatch(name -> FineTuning.matches(pattern, name))) {
                conflicts.add(
                        conflict(
                                "names of parameters, such as %s"
                                        .formatted(names.stream().limit(3).toList()),
                                pattern,
                                "* stands for any text: h.0.* is the first block",
                                "fine-tune.freeze"));
            }
        }
        if (model.trained().isEmpty()) {
            conflicts.add(
                    conflict(
                            "patterns that leave something to train",
                            model.fineTuning().freeze().toString(),
                            "freeze less",
                            "fine-tune.freeze"));
        }
        for (String gain : names) {
            String bias = gain.replace(GAIN, BIAS);
            boolean norm = gain.contains("ln_") && gain.endsWith(GAIN) && names.contains(bias);
            if (norm && model.fineTuning().trains(gain) != model.fineTuning().trains(bias)) {
                conflicts.add(
                        conflict(
                                "both or none of %s and %s".formatted(gain, bias),
                                "one of them",
                                "freeze a norm as a whole: " + gain.replace(GAIN, ".*"),
                                "fine-tune.freeze"));
            }
        }
    }

    private static Conflict conflict(String expected, String got, String advice, String... keys) {
        return new Conflict(List.of(keys), expected, got, advice);
    }
}
