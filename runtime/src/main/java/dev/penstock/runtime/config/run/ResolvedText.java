package dev.penstock.runtime.config.run;

import java.util.stream.Collectors;

/** Writes a configuration out in full. */
final class ResolvedText {
    private ResolvedText() {}

    static String of(RunConfig config) {
        return Keys.bySection().entrySet().stream()
                .map(
                        section ->
                                section.getValue().stream()
                                        .map(
                                                key ->
                                                        "  "
                                                                + key.name()
                                                                + " = "
                                                                + key.writtenIn(config))
                                        .collect(
                                                Collectors.joining(
                                                        "\n", section.getKey() + " {\n", "\n}\n")))
                .collect(Collectors.joining("", "", FaultEntries.written(config.fault())));
    }
}
