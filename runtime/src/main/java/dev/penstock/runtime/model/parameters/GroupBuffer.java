package dev.penstock.runtime.model.parameters;

import dev.penstock.cuda.device.Tensor;
import org.jspecify.annotations.Nullable;

/** The elements of a {@link ParameterGroup} for one use, wherever they lie at the time. */
final class GroupBuffer {
    private final String name;
    private @Nullable Tensor whole;

    /**
     * @param name for messages
     */
    GroupBuffer(String name) {
        this.name = name;
    }

    String name() {
        return name;
    }

    /**
     * @param flat a dense row of all elements of the group
     */
    void bind(Tensor flat) {
        whole = flat;
    }

    boolean isBound() {
        return whole != null;
    }

    void unbind() {
        whole = null;
    }

    /** Returns all elements as one row. */
    Tensor whole() {
        if (whole == null) {
            throw new IllegalStateException(name + " are not in memory");
        }
        return whole;
    }
}
