package dev.penstock.runtime.config.run;

import dev.penstock.runtime.config.reading.Conflict;
import dev.penstock.runtime.model.family.Families;
import dev.penstock.runtime.model.family.Family;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.model.shape.ModelShape;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Whether the values of section {@code model} make a model of the family. */
final class ModelChecks {
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
            conflicts.addAll(unlike(family.get(), shape));
        } catch (IllegalArgumentException e) {
            conflicts.add(
                    new Conflict(
                            List.of("model.heads", "model.family"),
                            "a model of family " + model.family(),
                            "none: " + e.getMessage(),
                            "change what does not fit"));
        }
        return conflicts;
    }

    /** What the family's own configuration cannot say of a shape, the family does not have. */
    private static List<Conflict> unlike(Family family, ModelShape shape) {
        List<Conflict> conflicts = new ArrayList<>();
        Map<String, Object> possible = ModelKeys.of(family, ModelConfig.described(family, shape));
        ModelKeys.of(family, shape)
                .forEach(
                        (key, value) -> {
                            Object told = possible.get(key);
                            if (!value.equals(told)) {
                                conflicts.add(
                                        new Conflict(
                                                List.of(key, "model.family"),
                                                "%s, as models of family %s have it"
                                                        .formatted(told, family.word()),
                                                value.toString(),
                                                "leave it out, or try another model.family"));
                            }
                        });
        return conflicts;
    }
}
