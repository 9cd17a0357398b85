package dev.penstock.runtime.config.reading;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Declares a key of the configuration on the record component that holds it. The component's name
 * in kebab-case is the key's name, its Java type the key's type.
 */
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.RECORD_COMPONENT)
public @interface Setting {
    /** The default as it would be written in a file; empty: the key has to be given. */
    String is() default "";

    /**
     * What values are allowed, as an interval: {@code [1, )}, {@code (0, 1]}, {@code [64 KiB, 1
     * GiB]}; empty: all. In a list it holds for each entry.
     */
    String range() default "";

    /**
     * The key's name where the component cannot have it; empty: the component's. {@code part.key}
     * for a key in a part of its section, {@code section { part { key = .. } }}.
     */
    String name() default "";

    /** What an empty {@link java.util.Optional} is called in a file, such as {@code auto}. */
    String word() default "";

    /** A path that the run writes to: kept as given, and need not exist. */
    boolean output() default false;

    /** One sentence for the reference: meaning and unit. */
    String doc();
}
