package dev.penstock;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The figures of a model on a task.
 *
 * @param task such as {@code text}
 * @param protocol by whose rules; figures of different protocols cannot be compared
 * @param figures by name, in the order in which {@code penstock evaluate} tells them: counts are
 *     {@code Long}, all else is {@code Double}
 */
public record Measured(String task, String protocol, Map<String, Number> figures) {
    public Measured {
        figures = Collections.unmodifiableMap(new LinkedHashMap<>(figures));
    }

    /**
     * Returns a figure.
     *
     * @throws IllegalArgumentException if the task has none of this name
     */
    public double figure(String name) {
        Number figure = figures.get(name);
        if (figure == null) {
            throw new IllegalArgumentException(
                    "expected one of %s, got %s".formatted(figures.keySet(), name));
        }
        return figure.doubleValue();
    }
}
