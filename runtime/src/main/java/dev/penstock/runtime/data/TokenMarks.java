package dev.penstock.runtime.data;

import dev.penstock.runtime.safetensors.SafetensorsFile;
import dev.penstock.runtime.safetensors.StoredTensor;
import dev.penstock.runtime.safetensors.StoredType;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * Reads what a file of tokens says of them: {@code positions}, which are 0 where a document begins,
 * and {@code targets}, -100 where none counts and the next token elsewhere. Both have a number for
 * each token but the last of every row.
 */
final class TokenMarks {
    private static final String POSITIONS = "positions";
    private static final String TARGETS = "targets";
    private static final int MARKS = 4;
    private static final long HIDDEN = -100;

    private final DataSpec spec;
    private final SafetensorsFile file;
    private final Tokens tokens;
    private final List<DataProblem> problems;

    private TokenMarks(
            DataSpec spec, SafetensorsFile file, Tokens tokens, List<DataProblem> problems) {
        this.spec = spec;
        this.file = file;
        this.tokens = tokens;
        this.problems = problems;
    }

    /**
     * Returns a mark for each token.
     *
     * @param tokens of the file, rows of {@code context + 1}
     * @param problems receives what is wrong with the file
     */
    static Tokens of(
            DataSpec spec, SafetensorsFile file, Tokens tokens, List<DataProblem> problems) {
        return new TokenMarks(spec, file, tokens, problems).read();
    }

    private Tokens read() {
        Optional<StoredTensor> positions =
                spec.marking().documents()
                        ? tensor(POSITIONS, "data.packing", true)
                        : Optional.empty();
        Optional<StoredTensor> targets = tensor(TARGETS, "data.loss", spec.marking().answers());
        Tokens marks = new Tokens(MARKS);
        int context = spec.context();
        long rows = tokens.size() / (context + 1);
        for (long row = 0; row < rows && problems.isEmpty(); row++) {
            for (int t = 0; t <= context; t++) {
                long at = row * context + t;
                boolean begins =
                        t < context && positions.isPresent() && positions.get().integer(at) == 0;
                boolean counts =
                        t == 0
                                || targets.isEmpty()
                                || counts(targets.get().integer(at - 1), row, t);
                marks.add((begins ? BatchSource.BEGINS : 0) + (counts ? 0 : BatchSource.UNCOUNTED));
            }
        }
        return marks;
    }

    private boolean counts(long target, long row, int t) {
        int token = tokens.get(row * (spec.context() + 1) + t);
        if (target != HIDDEN && target != token && problems.isEmpty()) {
            problems.add(
                    new DataProblem(
                            "data.source",
                            "targets that are the next token or " + HIDDEN,
                            "%s: %d where the next token of row %d is %d"
                                    .formatted(spec.source(), target, row, token),
                            "store them in this form"));
        }
        return target != HIDDEN;
    }

    private Optional<StoredTensor> tensor(String name, String key, boolean needed) {
        Optional<StoredTensor> found = file.find(name);
        List<Integer> shape = new ArrayList<>(file.tensor("tokens").shape());
        shape.set(shape.size() - 1, spec.context());
        boolean right =
                found.map(t -> t.type() == StoredType.I64 && t.shape().equals(shape))
                        .orElse(!needed);
        if (!right) {
            problems.add(
                    new DataProblem(
                            key,
                            "a file with %s as I64 %s".formatted(name, shape),
                            spec.source()
                                    + found.map(t -> " with %s %s".formatted(t.type(), t.shape()))
                                            .orElse(" without"),
                            "store them in this form, or leave the key out"));
        }
        return found;
    }
}
