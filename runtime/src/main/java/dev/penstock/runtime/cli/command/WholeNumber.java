package dev.penstock.runtime.cli.command;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/** The range of an option that takes a whole number, for whoever gives it something else. */
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.FIELD)
public @interface WholeNumber {
    /** The smallest. */
    int from();

    /** The largest. */
    int to() default Integer.MAX_VALUE;
}
