package dev.penstock.runtime.config.run;

import java.util.function.Predicate;
import java.util.stream.Collectors;

/** Writes a configuration out in full. */
final class ResolvedText {
    private ResolvedText() {}

    static String of(RunConfig config) {
        return of(config, _ -> true);
    }

    /** Writes some of its keys. */
    static String of(RunConfig config, Predicate<Key> wanted) {
        return Keys.bySection().entrySet().stream()
                .map(
                        section ->
                                section.getValue().stream()
                                        .filter(wanted)
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
