package dev.penstock.runtime.config.page;

import dev.penstock.runtime.config.run.FaultEntries;
import dev.penstock.runtime.config.run.Key;
import dev.penstock.runtime.config.run.Keys;
import java.util.stream.Collectors;

/** A reference of all keys, derived from their declarations. */
public final class ConfigReference {
    private ConfigReference() {}

    /** HOCON with every key at its default, each after a comment that says what it means. */
    public static String text() {
        return Keys.bySection().entrySet().stream()
                .map(
                        section ->
                                section.getValue().stream()
                                        .map(ConfigReference::entry)
                                        .collect(
                                                Collectors.joining(
                                                        "\n", section.getKey() + " {\n", "\n}\n")))
                .collect(Collectors.joining("\n", "", "\n" + FaultEntries.reference()));
    }

    private static String entry(Key key) {
        String standard =
                key.standard().isEmpty()
                        ? "  # " + key.name() + " =  (no fixed default)"
                        : "  " + key.name() + " = " + key.standard();
        return "  # " + key.doc() + " (" + key.takes() + ")\n" + standard;
    }
}
