package dev.penstock.runtime.evaluation;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;

/** Names figures, in the order in which they are told. */
final class Measures {
    private final Map<String, Number> named = new LinkedHashMap<>();

    Measures count(String name, long value) {
        named.put(name, value);
        return this;
    }

    Measures figure(String name, double value) {
        named.put(name, value);
        return this;
    }

    Map<String, Number> all() {
        return Collections.unmodifiableMap(named);
    }
}
