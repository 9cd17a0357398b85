package dev.penstock.runtime.gguf;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;

/** Facts of a {@code config.json}; collects what is missing or cannot be said in GGUF. */
final class ConfigFacts {
    private final JsonNode root;
    private final List<String> problems = new ArrayList<>();

    ConfigFacts(JsonNode root) {
        this.root = root;
    }

    List<String> problems() {
        return problems;
    }

    void problem(String text) {
        problems.add(text);
    }

    String text(String key) {
        return root.path(key).asText("");
    }

    boolean has(String key) {
        return root.hasNonNull(key);
    }

    /** Returns whether the key is there and true. */
    boolean flag(String key) {
        return root.path(key).asBoolean();
    }

    JsonNode node(String key) {
        return root.path(key);
    }

    int count(String key) {
        JsonNode node = root.path(key);
        if (!node.isInt() || node.intValue() < 1) {
            problems.add(
                    "%s: expected a whole number from 1, got %s"
                            .formatted(key, node.isMissingNode() ? "nothing" : node));
            return 1;
        }
        return node.intValue();
    }

    int countOr(String key, int otherwise) {
        return has(key) ? count(key) : otherwise;
    }

    double real(String key) {
        JsonNode node = root.path(key);
        if (!node.isNumber()) {
            problems.add(
                    "%s: expected a number, got %s"
                            .formatted(key, node.isMissingNode() ? "nothing" : node));
        }
        return node.asDouble();
    }

    /** Refuses anything but the one value that an engine computes; a missing key has it. */
    void require(String key, String... values) {
        String given = text(key);
        if (has(key) && !List.of(values).contains(given)) {
            problems.add(
                    "%s: expected %s, which is what engines compute, got %s"
                            .formatted(key, String.join(" or ", values), root.path(key)));
        }
    }
}
