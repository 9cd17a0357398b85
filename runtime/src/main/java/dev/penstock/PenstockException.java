package dev.penstock;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Something cannot be done, or was not. Holds every problem that was found, not only the first,
 * each as a sentence for people that says what was expected, what was found and what to try.
 */
public final class PenstockException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final transient List<String> problems;

    PenstockException(List<String> problems, @Nullable Throwable cause) {
        super(String.join("\n", problems), cause);
        this.problems = List.copyOf(problems);
    }

    /** Returns all problems, at least one. */
    public List<String> problems() {
        return problems;
    }
}
