package dev.penstock.runtime.data;

import dev.penstock.actors.spi.StepKind;
import dev.penstock.runtime.safetensors.SafetensorsFile;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.safetensors.StoredTensor;
import dev.penstock.runtime.safetensors.StoredType;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Tokens prepared elsewhere, fed in their order: step {@code s} reads {@code tokens[s - 1]}, or, if
 * sequences are not divided into steps, the next sequences. Holds out nothing.
 *
 * <p>Where words are hidden, a file with {@code labels} says which: its tokens are what the model
 * reads, and its labels the words, or -100 where none is to be predicted. Both have rows of {@code
 * context}.
 */
final class TokenFile implements TrainingData {
    private static final String TENSOR = "tokens";
    private static final String LABELS = "labels";
    private static final long HIDDEN = -100;

    private final DataSpec spec;
    private final Tokens tokens;

    /** One for each token; null if nobody asks. */
    private final @Nullable Tokens marks;

    /** The words to predict, one more than each, 0 where none is; null where the next ones are. */
    private final @Nullable Tokens labels;

    private final long sequences;
    private final long steps;

    private TokenFile(
            DataSpec spec,
            Tokens tokens,
            @Nullable Tokens marks,
            @Nullable Tokens labels,
            long sequences) {
        this.spec = spec;
        this.tokens = tokens;
        this.marks = marks;
        this.labels = labels;
        this.sequences = sequences;
        this.steps = steps(spec, sequences);
    }

    private static long steps(DataSpec spec, long sequences) {
        return spec.smallerLast()
                ? Math.ceilDiv(sequences, spec.sequences())
                : sequences / spec.sequences();
    }

    static TokenFile open(DataSpec spec) {
        if (spec.apart().isPresent()) {
            throw new DataException(
                    List.of(
                            new DataProblem(
                                    "data.packing",
                                    "none or documents, as the file says what is in a row",
                                    "one document in a row",
                                    "read the text itself, or prepare it with penstock data prepare")));
        }
        if (Files.isDirectory(spec.source())) {
            throw new DataException(
                    List.of(
                            new DataProblem(
                                    "data.source",
                                    "a safetensors file, or a folder of prepared tokens",
                                    spec.source() + ", a folder without prepared.json",
                                    "end its preparation with the same penstock data prepare")));
        }
        try (SafetensorsFile file = SafetensorsFile.open(spec.source())) {
            StoredTensor stored = file.tensor(TENSOR);
            boolean labelled =
                    spec.marking().masking().isPresent() && file.find(LABELS).isPresent();
            int row = spec.context() + (labelled ? 0 : 1);
            List<DataProblem> problems = problems(spec, stored, row);
            Tokens tokens = new Tokens(spec.vocabulary());
            if (problems.isEmpty()) {
                problems.addAll(copy(spec, stored, tokens));
            }
            Tokens labels =
                    labelled && problems.isEmpty()
                            ? labels(spec, stored, file.tensor(LABELS), problems)
                            : null;
            Tokens marks =
                    problems.isEmpty() && spec.marking().any()
                            ? TokenMarks.of(spec, file, tokens, problems)
                            : null;
            if (!problems.isEmpty()) {
                throw new DataException(problems);
            }
            return new TokenFile(spec, tokens, marks, labels, sequences(stored));
        } catch (StoredFileException e) {
            throw new DataException(
                    List.of(
                            new DataProblem(
                                    "data.source",
                                    "a safetensors file with " + TENSOR,
                                    String.valueOf(e.getMessage()),
                                    "check the path, or use data.format = text")));
        }
    }

    private static long sequences(StoredTensor stored) {
        return stored.elements() / Math.max(1, stored.shape().getLast());
    }

    private static Tokens labels(
            DataSpec spec, StoredTensor stored, StoredTensor found, List<DataProblem> problems) {
        Tokens labels = new Tokens(spec.vocabulary() + 1);
        if (found.type() != StoredType.I64 || !found.shape().equals(stored.shape())) {
            problems.add(
                    new DataProblem(
                            "data.source",
                            "%s as I64 %s, as %s".formatted(LABELS, stored.shape(), TENSOR),
                            "%s %s %s".formatted(spec.source(), found.type(), found.shape()),
                            "store them in this form"));
            return labels;
        }
        for (long i = 0; i < found.elements(); i++) {
            long label = found.integer(i);
            if (label != HIDDEN && (label < 0 || label >= spec.vocabulary())) {
                problems.add(
                        new DataProblem(
                                "model.vocabulary",
                                "labels from 0 to %d, or %d"
                                        .formatted(spec.vocabulary() - 1, HIDDEN),
                                "%s: label %d of all is %d".formatted(spec.source(), i, label),
                                "set model.vocabulary to the value for which the file was made"));
                break;
            }
            labels.add(label == HIDDEN ? 0 : (int) label + 1);
        }
        return labels;
    }

    /**
     * @param row tokens of a row
     */
    private static List<DataProblem> problems(DataSpec spec, StoredTensor stored, int row) {
        List<DataProblem> problems = new ArrayList<>();
        List<Integer> shape = stored.shape();
        String got = "%s %s %s".formatted(spec.source(), stored.type(), shape);
        boolean bySteps = shape.size() == 3;
        if (stored.type() != StoredType.I64 || !(bySteps || shape.size() == 2)) {
            String length = row == spec.context() ? "context" : "context + 1";
            String expected =
                    "%s as I64 [step, batch, %s] or [sequence, %s]"
                            .formatted(TENSOR, length, length);
            problems.add(new DataProblem("data.source", expected, got, "store them in this form"));
            return problems;
        }
        int more = row - spec.context();
        if (shape.getLast() != row) {
            String expected =
                    "rows of %d tokens (context%s)".formatted(row, more == 0 ? "" : " + 1");
            String advice = "set model.context = " + (shape.getLast() - more);
            problems.add(new DataProblem("model.context", expected, got, advice));
        }
        if (bySteps && shape.get(1) != spec.sequences()) {
            String expected = "%d sequences per step".formatted(spec.sequences());
            String advice = "set batch.sequences = " + shape.get(1);
            problems.add(new DataProblem("batch.sequences", expected, got, advice));
        }
        long steps = bySteps ? shape.get(0) : steps(spec, sequences(stored));
        if (steps < spec.steps()) {
            String expected = "tokens for %d steps".formatted(spec.steps());
            String advice =
                    "set run.steps = %d or fewer%s"
                            .formatted(
                                    steps,
                                    bySteps
                                                    || spec.smallerLast()
                                                    || steps * spec.sequences() == shape.get(0)
                                            ? ""
                                            : ", or batch.last = smaller");
            problems.add(new DataProblem("run.steps", expected, got, advice));
        }
        return problems;
    }

    private static List<DataProblem> copy(DataSpec spec, StoredTensor stored, Tokens tokens) {
        long row = stored.shape().getLast();
        boolean bySteps = stored.shape().size() == 3;
        long batch = (bySteps ? stored.shape().get(1) : 1) * row;
        for (long i = 0; i < stored.elements(); i++) {
            long token = stored.integer(i);
            if (token < 0 || token >= spec.vocabulary()) {
                return List.of(
                        new DataProblem(
                                "model.vocabulary",
                                "tokens from 0 to %d".formatted(spec.vocabulary() - 1),
                                "%s: tokens[%d, %s%d] = %d"
                                        .formatted(
                                                spec.source(),
                                                i / batch,
                                                bySteps ? i % batch / row + ", " : "",
                                                i % row,
                                                token),
                                "set model.vocabulary to the value for which the file was made"));
            }
            tokens.add((int) token);
        }
        return List.of();
    }

    @Override
    public void read(StepKind kind, long step, int microBatch, int[] batch) {
        switch (kind) {
            case TRAIN -> {
                if (labels == null) {
                    readStep(step, microBatch, batch);
                } else {
                    Tokens words = labels;
                    eachLabelled(
                            step,
                            microBatch,
                            batch.length,
                            (i, at) -> batch[i] = Math.max(0, words.get(at) - 1));
                }
            }
            case EVALUATE ->
                    throw new IllegalStateException("a file of tokens has no held-out data");
        }
    }

    @Override
    public void inputs(StepKind kind, long step, int microBatch, int[] batch) {
        if (labels == null) {
            read(kind, step, microBatch, batch);
        } else {
            eachLabelled(step, microBatch, batch.length, (i, at) -> batch[i] = tokens.get(at));
        }
    }

    @Override
    public boolean inPlace() {
        return labels != null;
    }

    private interface Labelled {
        /**
         * @param index in rows of context + 1
         * @param inFile in rows of the file
         */
        void at(int index, long inFile);
    }

    /** Visits what exists of a micro-batch. */
    private void eachLabelled(long step, int microBatch, int length, Labelled work) {
        requireKnown(step);
        int row = spec.context() + 1;
        long first =
                (step - 1) * spec.sequences() + (long) microBatch * spec.sequencesPerMicroBatch();
        for (int b = 0; b < length / row && first + b < sequences; b++) {
            for (int place = 0; place < spec.context(); place++) {
                work.at(b * row + place, (first + b) * spec.context() + place);
            }
        }
    }

    private void requireKnown(long step) {
        if (step < 1 || step > steps) {
            throw new IllegalStateException(
                    "%s: expected a step from 1 to %d, got %d; set run.steps = %d"
                            .formatted(spec.source(), steps, step, steps));
        }
    }

    private void readStep(long step, int microBatch, int[] batch) {
        requireKnown(step);
        spec.requireWholeRows(batch);
        long row = spec.context() + 1L;
        long sequence =
                (step - 1) * spec.sequences() + (long) microBatch * spec.sequencesPerMicroBatch();
        int there = Math.clamp((sequences - sequence) * row, 0, batch.length);
        tokens.copy(sequence * row, batch, 0, there);
        Arrays.fill(batch, there, batch.length, 0);
    }

    @Override
    public boolean packed() {
        return spec.marking().documents();
    }

    /** Targets of -100 mark the borders of documents too. */
    @Override
    public boolean masked() {
        return marks != null || labels != null;
    }

    @Override
    public void marks(StepKind kind, long step, int microBatch, byte[] batch) {
        if (labels != null) {
            Tokens words = labels;
            Arrays.fill(batch, UNCOUNTED);
            eachLabelled(
                    step,
                    microBatch,
                    batch.length,
                    (i, at) -> batch[i] = words.get(at) == 0 ? UNCOUNTED : 0);
            return;
        }
        long row = spec.context() + 1L;
        long first =
                (step - 1) * spec.sequences() + (long) microBatch * spec.sequencesPerMicroBatch();
        for (int i = 0; i < batch.length; i++) {
            long at = first * row + i;
            batch[i] = marks == null || at >= marks.size() ? 0 : (byte) marks.get(at);
        }
    }

    @Override
    public int sequences(StepKind kind, long step, int full) {
        return Math.clamp(sequences - (step - 1) * spec.sequences(), 1, full);
    }

    @Override
    public long stepsOfEpoch() {
        return steps;
    }

    @Override
    public boolean hasHeldOut() {
        return false;
    }

    @Override
    public int heldOutBatches() {
        return 0;
    }

    @Override
    public long heldOutRows(int batches) {
        return 0;
    }

    @Override
    public long trainingTokens() {
        return tokens.size();
    }

    @Override
    public boolean isText() {
        return false;
    }

    @Override
    public long heldOutBytes(long sequences) {
        return 0; // nothing is held out
    }

    @Override
    public long heldOutTargets(long first, long sequences) {
        return 0;
    }

    @Override
    public Optional<CountedTargets> counted() {
        if (marks == null || !spec.marking().answers()) {
            return Optional.empty();
        }
        int row = spec.context() + 1;
        long targets = 0;
        long silent = 0;
        long silentAtFirst = 0;
        long read = Math.min(sequences, spec.steps() * spec.sequences());
        for (long sequence = 0; sequence < sequences; sequence++) {
            int here = 0;
            for (int i = 1; i < row; i++) {
                here += counts(marks.get(sequence * row + i)) ? 1 : 0;
            }
            targets += here;
            silent += here == 0 ? 1 : 0;
            silentAtFirst += here == 0 && sequence < read ? 1 : 0;
        }
        return Optional.of(
                new CountedTargets(0, 0, targets, sequences, silent, silentAtFirst < read));
    }

    @Override
    public String description() {
        return "%,d prepared tokens for %d steps".formatted(tokens.size(), steps);
    }
}
