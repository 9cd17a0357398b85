package dev.penstock.runtime.data;

import java.util.List;
import java.util.stream.Collectors;

/** The data of a run cannot be used. Holds every problem that was found, not only the first. */
public final class DataException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final transient List<DataProblem> problems;

    public DataException(List<DataProblem> problems) {
        super(problems.stream().map(DataProblem::toString).collect(Collectors.joining("\n")));
        this.problems = List.copyOf(problems);
    }

    /** Returns at least one problem. */
    public List<DataProblem> problems() {
        return problems;
    }
}
