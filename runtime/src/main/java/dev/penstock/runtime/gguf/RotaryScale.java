package dev.penstock.runtime.gguf;

import com.fasterxml.jackson.databind.JsonNode;
import dev.penstock.runtime.model.family.ConfigJson;
import dev.penstock.runtime.safetensors.StoredTensor;
import dev.penstock.runtime.safetensors.TensorSource;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * The frequencies of rotary positions: {@code rope_theta} with {@code rope_scaling}, or in newer
 * files both in {@code rope_parameters}.
 */
final class RotaryScale {
    private static final double USUAL_THETA = 10_000;

    private RotaryScale() {}

    private static JsonNode scaling(ConfigJson config) {
        return config.has("rope_parameters")
                ? config.value("rope_parameters")
                : config.value("rope_scaling");
    }

    private static String type(ConfigJson config) {
        JsonNode scaling = scaling(config);
        String older = scaling.path("type").asText("default");
        return scaling.path("rope_type").asText(older);
    }

    static double theta(ConfigJson config) {
        JsonNode newer = config.value("rope_parameters").path("rope_theta");
        JsonNode given = newer.isNumber() ? newer : config.value("rope_theta");
        return given.asDouble(USUAL_THETA);
    }

    /** Returns what metadata says; Llama 3's way is a tensor. */
    static Map<String, GgufValue> facts(ConfigJson config) {
        Map<String, GgufValue> facts = new LinkedHashMap<>();
        switch (type(config)) {
            case "default", "llama3" -> {}
            case "linear" -> {
                facts.put("rope.scaling.type", new GgufValue.Text("linear"));
                facts.put(
                        "rope.scaling.factor",
                        new GgufValue.Real(scaling(config).path("factor").asDouble(1)));
            }
            default -> config.refuse("rope_type", "default, linear or llama3", type(config));
        }
        return facts;
    }

    /**
     * Returns, for Llama 3's scaling, by what each frequency is divided: 1 for short waves, {@code
     * factor} for waves longer than the original context, and between them a blend.
     *
     * @param head elements of a head
     */
    static Optional<TensorSource> factors(ConfigJson config, int head) {
        if (!type(config).equals("llama3")) {
            return Optional.empty();
        }
        JsonNode scaling = scaling(config);
        double factor = scaling.path("factor").asDouble(8);
        double low = scaling.path("low_freq_factor").asDouble(1);
        double high = scaling.path("high_freq_factor").asDouble(4);
        double original = scaling.path("original_max_position_embeddings").asDouble(8192);
        float[] factors = new float[head / 2];
        for (int i = 0; i < factors.length; i++) {
            double wave = 2 * Math.PI * Math.pow(theta(config), 2.0 * i / head);
            double smooth = (original / wave - low) / (high - low);
            if (wave < original / high) {
                factors[i] = 1;
            } else if (wave > original / low) {
                factors[i] = (float) factor;
            } else {
                factors[i] = (float) (1 / ((1 - smooth) / factor + smooth));
            }
        }
        return Optional.of(
                StoredTensor.ofFloats("rope_freqs.weight", List.of(factors.length), factors));
    }
}
