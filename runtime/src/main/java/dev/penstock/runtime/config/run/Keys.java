package dev.penstock.runtime.config.run;

import dev.penstock.runtime.config.reading.NearWord;
import java.lang.reflect.RecordComponent;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
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

    /** A section's own keys come before those of its parts. */
    private static Comparator<String> shallowest() {
        return Comparator.comparingLong(path -> path.chars().filter(c -> c == '.').count());
    }

    /**
     * The known key or section that was probably meant: a slip in its name, or its name in another
     * section. A word that stands in no section is rather a section's name than a key's.
     */
    static Optional<String> meant(String path) {
        Optional<String> section = NearWord.among(bySection().keySet(), path);
        if (path.indexOf('.') < 0 && section.isPresent()) {
            return section;
        }
        List<String> paths = all().stream().map(Key::path).toList();
        String name = path.substring(path.lastIndexOf('.') + 1);
        return NearWord.among(paths, path)
                .or(
                        () ->
                                NearWord.among(all().stream().map(Key::name).toList(), name)
                                        .flatMap(
                                                nearest ->
                                                        paths.stream()
                                                                .filter(
                                                                        p ->
                                                                                p.endsWith(
                                                                                        "."
                                                                                                + nearest))
                                                                .min(shallowest())))
                .or(() -> NearWord.among(List.of(FaultEntries.NAME), path))
                .or(() -> section);
    }
}
