package dev.penstock.runtime.model.family;

import dev.penstock.runtime.model.shape.FineTuning;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** What of a model is trained, for people. */
public final class TrainedWords {
    private TrainedWords() {}

    /** Returns whether something is trained other than all of the model's own parameters. */
    public static boolean areNeeded(ModelConfig model) {
        return !model.fineTuning().equals(FineTuning.FULL);
    }

    /**
     * Returns what is trained: {@code lora of rank 4, alpha 8.0, on c_attn; without h.0.*: 4,608 of
     * 377,184 parameters are trained}.
     *
     * @param besides said of the adapters
     */
    public static String of(ModelConfig model, List<String> besides) {
        List<String> said = new ArrayList<>();
        said.add(AdapterParts.words(model).orElse("full"));
        said.addAll(besides);
        if (!model.fineTuning().freeze().isEmpty()) {
            said.add("without " + String.join(", ", model.fineTuning().freeze()));
        }
        return "%s: %,d of %,d parameters are trained"
                .formatted(
                        String.join("; ", said),
                        elements(model.trained()),
                        elements(model.parameters()));
    }

    /** Returns how many elements parameters of these shapes have. */
    public static long elements(Map<String, List<Integer>> parameters) {
        return parameters.values().stream()
                .mapToLong(
                        shape ->
                                shape.stream()
                                        .mapToLong(Integer::longValue)
                                        .reduce(1, (a, b) -> a * b))
                .sum();
    }
}
