package dev.penstock.runtime.config.page;

import dev.penstock.runtime.config.hardware.NetworkSection;
import dev.penstock.runtime.config.hardware.NodesSection;
import dev.penstock.runtime.config.hardware.TrainingBytesSection;
import dev.penstock.runtime.config.node.ClusterSection;
import dev.penstock.runtime.config.node.ManagementSection;
import dev.penstock.runtime.config.node.TlsSection;
import dev.penstock.runtime.config.reading.Setting;
import dev.penstock.runtime.config.run.FaultEntries;
import dev.penstock.runtime.config.run.FaultEntry;
import dev.penstock.runtime.config.run.Key;
import dev.penstock.runtime.config.run.Keys;
import dev.penstock.runtime.config.run.SectionReader;
import dev.penstock.runtime.config.run.ValueType;
import java.lang.reflect.RecordComponent;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * {@code docs/configuration.md}: all keys of all files, out of the declarations that check them.
 */
public final class ConfigPage {
    private static final String HEAD =
            """
            # Configuration

            All keys, what they take and what they are unless given. This page is written by `./penstock config keys --markdown`
            from the declarations that check configurations; a test compares it.

            Files are [HOCON](https://github.com/lightbend/config/blob/main/HOCON.md): JSON with comments, without most quotes and
            commas; `a { b = 1 }` is `a.b = 1`. A file may `include` another and use `${ENVIRONMENT}` variables. Relative paths are
            relative to the file that they are written in. `--set KEY=VALUE` overrides a key for one command, later ones win.
            Everything that is wrong is said at once, each with file, line, key, what was expected and what came; an
            unknown key is an error. `./penstock config check FILE` says it without running and prints every key as it is understood.

            Sizes have a unit (`8 MiB`, `16 GB`), and so have durations (`500 ms`, `5 s`, `2 minutes`).
            """;

    private ConfigPage() {}

    /** The whole page. */
    public static String markdown() {
        return Stream.of(
                        Stream.of(HEAD, "## A run\n"),
                        Keys.bySection().entrySet().stream().map(ConfigPage::section),
                        faults(),
                        Stream.of(
                                "## A node of a cluster\n",
                                section("cluster", ClusterSection.class),
                                section("cluster.tls", TlsSection.class),
                                section("management", ManagementSection.class),
                                """
                                ## A cluster to plan for

                                For `penstock plan --hardware`. `name` says what it is called; `nodes` is a list of sections.
                                """,
                                section("nodes", NodesSection.class),
                                section("network", NetworkSection.class),
                                section("bytes", TrainingBytesSection.class)))
                .flatMap(part -> part)
                .collect(Collectors.joining("\n"));
    }

    private static String section(Map.Entry<String, List<Key>> section) {
        return section.getValue().stream()
                .map(key -> row(key.name(), key.takes(), key.standard(), key.doc()))
                .collect(Collectors.joining("", head(section.getKey()), ""));
    }

    private static Stream<String> faults() {
        return Stream.concat(
                Stream.of(
                        """
                        ### fault

                        What goes wrong on purpose: a list of entries, each of one of these kinds, named by its first key. See [faults](faults.md).
                        """),
                FaultEntry.KINDS.stream().map(ConfigPage::fault));
    }

    private static String fault(Class<? extends Record> kind) {
        return rows(kind)
                .collect(
                        Collectors.joining(
                                "",
                                "| **%s** | takes | unless given | |\n|---|---|---|---|\n"
                                        .formatted(FaultEntries.word(kind)),
                                ""));
    }

    private static String section(String path, Class<? extends Record> type) {
        return rows(type).collect(Collectors.joining("", head(path), ""));
    }

    private static String head(String path) {
        return "### %s\n\n| key | takes | unless given | |\n|---|---|---|---|\n".formatted(path);
    }

    private static Stream<String> rows(Class<? extends Record> type) {
        return Arrays.stream(type.getRecordComponents()).map(ConfigPage::row);
    }

    private static String row(RecordComponent component) {
        Setting setting = component.getAnnotation(Setting.class);
        return row(
                SectionReader.nameOf(component),
                ValueType.of(component.getGenericType(), setting).noun(),
                setting.is(),
                setting.doc());
    }

    private static String row(String key, String takes, String standard, String doc) {
        return "| `%s` | %s | %s | %s |\n"
                .formatted(
                        key,
                        cell(takes),
                        standard.isEmpty() ? "" : "`" + cell(standard) + "`",
                        cell(doc.substring(0, 1).toUpperCase(Locale.ROOT) + doc.substring(1)));
    }

    private static String cell(String text) {
        return text.replace("|", "\\|");
    }
}
