package dev.penstock.runtime.config.run;

import com.typesafe.config.ConfigList;
import com.typesafe.config.ConfigObject;
import com.typesafe.config.ConfigValue;
import com.typesafe.config.ConfigValueType;
import dev.penstock.runtime.config.reading.ConfigText;
import dev.penstock.runtime.config.reading.NearWord;
import dev.penstock.runtime.config.reading.Problems;
import dev.penstock.runtime.config.reading.Setting;
import java.lang.reflect.RecordComponent;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.Collectors;

/** Reads and writes the list {@code fault}. */
public final class FaultEntries {
    /** The name of the list. */
    static final String NAME = "fault";

    private static final String EXAMPLE =
            "write for example fault = [ { kill-rank = 1, step = 7, op = \"1F3\" } ]";

    private final Problems problems;
    private final SectionReader sections;

    FaultEntries(Problems problems, SectionReader sections) {
        this.problems = problems;
        this.sections = sections;
    }

    /** The entries that are sound, by their place in the list; the others are problems. */
    SortedMap<Integer, FaultEntry> read(ConfigObject written) {
        SortedMap<Integer, FaultEntry> entries = new TreeMap<>();
        ConfigValue value = written.get(NAME);
        if (value == null
                || !ConfigText.isResolved(value)
                || value.valueType() == ConfigValueType.NULL) {
            return entries;
        }
        if (!(value instanceof ConfigList list)) {
            problems.at(value, NAME, "a list of faults [ { .. }, .. ]", EXAMPLE);
            return entries;
        }
        for (int i = 0; i < list.size(); i++) {
            int index = i;
            entry(list.get(i), "%s[%d]".formatted(NAME, i))
                    .ifPresent(entry -> entries.put(index, entry));
        }
        return entries;
    }

    private Optional<FaultEntry> entry(ConfigValue value, String path) {
        if (!(value instanceof ConfigObject entry)) {
            problems.at(value, path, "a fault { .. }", EXAMPLE);
            return Optional.empty();
        }
        List<Class<? extends Record>> kinds =
                FaultEntry.KINDS.stream().filter(kind -> entry.containsKey(word(kind))).toList();
        if (kinds.size() != 1) {
            notOneKind(entry, path, kinds);
            return Optional.empty();
        }
        return sections.read(kinds.getFirst(), path, Optional.of(entry), value.origin())
                .map(FaultEntry.class::cast);
    }

    private void notOneKind(ConfigObject entry, String path, List<Class<? extends Record>> kinds) {
        List<String> words = FaultEntry.KINDS.stream().map(FaultEntries::word).toList();
        String meant =
                entry.keySet().stream()
                        .sorted()
                        .flatMap(key -> NearWord.among(words, key).stream())
                        .findFirst()
                        .map(word -> "did you mean " + word + "?")
                        .orElse(EXAMPLE);
        problems.at(
                entry.origin(),
                path,
                "one of " + String.join(", ", words),
                kinds.isEmpty()
                        ? "none of them"
                        : kinds.stream()
                                .map(FaultEntries::word)
                                .collect(Collectors.joining(" and ")),
                kinds.isEmpty() ? meant : "make an entry of each");
    }

    /** The key that names a kind, such as {@code kill-rank}. */
    public static String word(Class<? extends Record> kind) {
        return SectionReader.nameOf(kind.getRecordComponents()[0]);
    }

    /** The list as HOCON that reads back to the same. */
    static String written(List<FaultEntry> entries) {
        return NAME + " = " + value(entries) + "\n";
    }

    static String value(List<FaultEntry> entries) {
        return entries.isEmpty()
                ? "[]"
                : entries.stream()
                        .map(FaultEntries::written)
                        .collect(Collectors.joining("\n  ", "[\n  ", "\n]"));
    }

    static String written(FaultEntry entry) {
        return Arrays.stream(entry.getClass().getRecordComponents())
                .map(component -> keyAndValue(component, entry))
                .collect(Collectors.joining(", ", "{ ", " }"));
    }

    private static String keyAndValue(RecordComponent component, FaultEntry entry) {
        Setting setting = component.getAnnotation(Setting.class);
        ValueType<?> type = ValueType.of(component.getGenericType(), setting);
        try {
            String value = type.written(component.getAccessor().invoke(entry));
            return SectionReader.nameOf(component) + " = " + value;
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("cannot read " + component, e);
        }
    }

    /** What can be in the list, as HOCON comments. */
    public static String reference() {
        List<String> lines = new ArrayList<>();
        lines.add("# what goes wrong on purpose: a list of entries, each of one of these kinds");
        for (Class<? extends Record> kind : FaultEntry.KINDS) {
            lines.add("#   { " + example(kind) + " }");
            for (RecordComponent component : kind.getRecordComponents()) {
                Setting setting = component.getAnnotation(Setting.class);
                String standard = setting.is().isEmpty() ? "" : "; unless given: " + setting.is();
                lines.add(
                        "#       %s: %s (%s%s)"
                                .formatted(
                                        SectionReader.nameOf(component),
                                        setting.doc(),
                                        ValueType.of(component.getGenericType(), setting).noun(),
                                        standard));
            }
        }
        lines.add(NAME + " = []");
        return String.join("\n", lines) + "\n";
    }

    /** The keys that have to be given. */
    private static String example(Class<? extends Record> kind) {
        Map<String, String> usual =
                Map.of("for", "4 s", "fail-disk", "100 KiB", "tear-checkpoint", "shard-written");
        return Arrays.stream(kind.getRecordComponents())
                .filter(component -> component.getAnnotation(Setting.class).is().isEmpty())
                .map(
                        component -> {
                            String name = SectionReader.nameOf(component);
                            boolean share = component.getType() == double.class;
                            String number = name.equals("factor") ? "3" : share ? "0.01" : "1";
                            return name + " = " + usual.getOrDefault(name, number);
                        })
                .collect(Collectors.joining(", "));
    }
}
