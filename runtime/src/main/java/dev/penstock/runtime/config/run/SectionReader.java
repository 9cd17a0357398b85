package dev.penstock.runtime.config.run;

import com.typesafe.config.ConfigObject;
import com.typesafe.config.ConfigOrigin;
import com.typesafe.config.ConfigRenderOptions;
import com.typesafe.config.ConfigValue;
import dev.penstock.runtime.config.reading.Mismatch;
import dev.penstock.runtime.config.reading.NearWord;
import dev.penstock.runtime.config.reading.Places;
import dev.penstock.runtime.config.reading.Problems;
import dev.penstock.runtime.config.reading.Setting;
import java.lang.reflect.RecordComponent;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** Reads one record whose components are declared with {@link Setting}. */
public final class SectionReader {
    private final Problems problems;
    private final Places places;

    SectionReader(Problems problems, Places places) {
        this.problems = problems;
        this.places = places;
    }

    /**
     * The record, or nothing if something is wrong, which is then among the problems.
     *
     * @param path of the section, for messages
     * @param written empty where the section is not in the file
     * @param origin where a missing key is missing
     */
    public <T extends Record> Optional<T> read(
            Class<T> type, String path, Optional<ConfigObject> written, ConfigOrigin origin) {
        RecordComponent[] components = type.getRecordComponents();
        List<String> names = Arrays.stream(components).map(SectionReader::nameOf).toList();
        written.ifPresent(
                section -> section.forEach((key, value) -> known(path, names, key, value)));
        var values = new @Nullable Object[components.length];
        boolean complete = true;
        for (int i = 0; i < components.length; i++) {
            String name = names.get(i);
            Optional<ConfigValue> value = written.map(section -> section.get(name));
            values[i] = value(components[i], path + "." + name, value, origin);
            complete &= values[i] != null;
        }
        return complete ? Optional.of(construct(type, values)) : Optional.empty();
    }

    private void known(String path, List<String> names, String key, ConfigValue value) {
        if (!names.contains(key)) {
            problems.at(
                    value.origin(),
                    path + "." + key,
                    "one of " + String.join(", ", names),
                    "an unknown key",
                    NearWord.among(names, key)
                            .map(name -> "did you mean " + name + "?")
                            .orElse("remove it"));
        }
    }

    private @Nullable Object value(
            RecordComponent component,
            String path,
            Optional<ConfigValue> written,
            ConfigOrigin origin) {
        Setting setting = component.getAnnotation(Setting.class);
        ValueType<?> type = ValueType.of(component.getGenericType(), setting);
        if (written.isPresent()) {
            return value(written.get(), path, type, "it is " + setting.doc());
        }
        if (setting.is().isEmpty()) {
            problems.at(origin, path, type.noun(), "nothing", "add it: " + setting.doc());
            return null;
        }
        return type.parse(setting.is());
    }

    /**
     * What is written, or null if it is no such value, which is then among the problems.
     *
     * @param advice where the type has none of its own
     */
    @Nullable Object value(ConfigValue written, String path, ValueType<?> type, String advice) {
        try {
            return type.read().apply(written, places);
        } catch (Mismatch mismatch) {
            for (Mismatch.Part part : mismatch.parts()) {
                problems.at(
                        part.origin(),
                        path + part.place(),
                        part.expected(),
                        part.got(),
                        part.advice());
            }
            if (!mismatch.parts().isEmpty()) {
                return null;
            }
            problems.at(
                    written.origin(),
                    path,
                    type.noun(),
                    mismatch.gotOr(written.render(ConfigRenderOptions.concise())),
                    mismatch.adviceOr(advice));
            return null;
        }
    }

    /** The key of a component. */
    public static String nameOf(RecordComponent component) {
        String given = component.getAnnotation(Setting.class).name();
        return given.isEmpty() ? kebab(component.getName()) : given;
    }

    /** {@code dataPlane} as it is written: {@code data-plane}. */
    static String kebab(String camel) {
        return camel.replaceAll("([A-Z])", "-$1").toLowerCase(Locale.ROOT);
    }

    /** A record of the values of its components, in their order. */
    static <T> T construct(Class<T> type, @Nullable Object[] values) {
        Class<?>[] types =
                Arrays.stream(type.getRecordComponents())
                        .map(RecordComponent::getType)
                        .toArray(Class<?>[]::new);
        try {
            return type.getDeclaredConstructor(types).newInstance(values);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("cannot make a " + type.getSimpleName(), e);
        }
    }
}
