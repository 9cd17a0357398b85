package dev.penstock.runtime.config.run;

import java.lang.reflect.RecordComponent;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** Every key of the configuration, derived from the records' declarations. */
public final class Keys {
    private static final List<Key> ALL =
            sections()
                    .flatMap(
                            section ->
                                    Arrays.stream(section.getType().getRecordComponents())
                                            .map(component -> Key.of(section, component)))
                    .toList();

    private Keys() {}

    /** All parts of a configuration but the list of faults. */
    private static Stream<RecordComponent> sections() {
        return Arrays.stream(RunConfig.class.getRecordComponents())
                .filter(part -> part.getType().isRecord());
    }

    /** All keys, in the order of declaration. */
    static List<Key> all() {
        return ALL;
    }

    /** The keys by section, both in the order of declaration. */
    public static Map<String, List<Key>> bySection() {
        return ALL.stream()
                .collect(
                        Collectors.groupingBy(
                                Key::sectionName, LinkedHashMap::new, Collectors.toList()));
    }

    /** A configuration of the given values. */
    static RunConfig assemble(
            Function<Key, @Nullable Object> values, Collection<FaultEntry> faults) {
        List<Object> sections = new ArrayList<>();
        for (RecordComponent section : sections().toList()) {
            sections.add(
                    SectionReader.construct(
                            section.getType(),
                            ALL.stream()
                                    .filter(
                                            key ->
                                                    key.section()
                                                            .getName()
                                                            .equals(section.getName()))
                                    .map(values)
                                    .toArray()));
        }
        sections.add(List.copyOf(faults));
        return SectionReader.construct(RunConfig.class, sections.toArray());
    }
}
