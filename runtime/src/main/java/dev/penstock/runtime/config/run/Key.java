package dev.penstock.runtime.config.run;

import dev.penstock.runtime.config.reading.Setting;
import java.lang.reflect.RecordComponent;

/**
 * A key of the configuration, as its {@link Setting} declares it.
 *
 * @param section the record component of {@link RunConfig} that holds it
 * @param component the record component of the section
 * @param name within the section; {@code part.key} where the section has parts
 */
public record Key(
        RecordComponent section,
        RecordComponent component,
        String sectionName,
        String name,
        Setting setting,
        ValueType<?> type) {

    static Key of(RecordComponent section, RecordComponent component) {
        Setting setting = component.getAnnotation(Setting.class);
        if (setting == null) {
            throw new IllegalStateException(component + " of a section is not declared a @Setting");
        }
        return new Key(
                section,
                component,
                SectionReader.kebab(section.getName()),
                SectionReader.nameOf(component),
                setting,
                ValueType.of(component.getGenericType(), setting));
    }

    /** As in a file: {@code data-plane.term-length}. */
    public String path() {
        return sectionName + "." + name;
    }

    /** One sentence: meaning and unit. */
    public String doc() {
        return setting.doc();
    }

    /** The default as it would be written, empty where the key has to be given. */
    public String standard() {
        return setting.is();
    }

    /** What it takes, such as {@code an integer, at least 1}. */
    public String takes() {
        return type.noun();
    }

    /** This key's value in a configuration, as it would be written. */
    String writtenIn(RunConfig config) {
        return type.written(valueIn(config));
    }

    /** This key's value in a configuration. */
    Object valueIn(RunConfig config) {
        try {
            Object values = section.getAccessor().invoke(config);
            return component.getAccessor().invoke(values);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("cannot read " + path(), e);
        }
    }
}
