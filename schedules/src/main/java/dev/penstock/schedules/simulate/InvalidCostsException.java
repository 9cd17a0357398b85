package dev.penstock.schedules.simulate;

import java.util.List;

/** A text holds no costs. Holds everything that is wrong with it. */
public final class InvalidCostsException extends IllegalArgumentException {
    private static final long serialVersionUID = 1L;

    private final transient List<String> problems;

    InvalidCostsException(List<String> problems) {
        super(String.join("\n", problems));
        this.problems = List.copyOf(problems);
    }

    /** In the order of the text. */
    public List<String> problems() {
        return problems;
    }
}
