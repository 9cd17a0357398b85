package dev.penstock.runtime.chat;

import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Variables of a template; a loop's own do not outlive a round of it. */
final class Scope {
    private final @Nullable Scope outer;
    private final TemplateWork work;
    private final Map<String, Object> variables = new HashMap<>();

    /** The outermost. */
    Scope(TemplateWork work) {
        this.work = work;
        this.outer = null;
    }

    /** Of a round of a loop. */
    Scope(Scope outer) {
        this.work = outer.work;
        this.outer = outer;
    }

    TemplateWork work() {
        return work;
    }

    Object get(String name) {
        Object found = variables.get(name);
        if (found != null) {
            return found;
        }
        return outer == null ? Absent.UNDEFINED : outer.get(name);
    }

    void set(String name, Object value) {
        variables.put(name, value);
    }
}
