package dev.penstock.runtime.config.reading;

import java.util.List;
import java.util.stream.Collectors;

/** A configuration cannot be used. Holds every problem that was found, not only the first. */
public class ConfigException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final transient List<Problem> problems;

    public ConfigException(List<Problem> problems) {
        super(problems.stream().map(Problem::toString).collect(Collectors.joining("\n")));
        this.problems = List.copyOf(problems);
    }

    /** At least one, in the order of the keys' declaration. */
    public List<Problem> problems() {
        return problems;
    }
}
