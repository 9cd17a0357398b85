package dev.penstock.runtime.data.labelled;

import dev.penstock.actors.spi.StepKind;
import dev.penstock.runtime.data.CountedTargets;
import dev.penstock.runtime.data.DataException;
import dev.penstock.runtime.data.DataFormat;
import dev.penstock.runtime.data.DataProblem;
import dev.penstock.runtime.data.DataSpec;
import dev.penstock.runtime.data.TrainingData;
import dev.penstock.runtime.data.rows.Permutation;
import dev.penstock.runtime.safetensors.StoredFileException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.function.BiConsumer;

/**
 * Texts with labels as the data of a classifier: a row each, padded to the context. The first token
 * of a row has its label as target; no other has one. What fills a row up counts as a document of
 * its own, which the text does not see. The last rows are held out; the others come in another
 * order in every epoch.
 */
public final class LabelledTexts implements TrainingData {
    private final DataSpec spec;
    private final List<LabelledRow> rows;
    private final int training;

    private LabelledTexts(DataSpec spec, List<LabelledRow> rows) {
        this.spec = spec;
        this.rows = rows;
        training = rows.size() - (int) Math.floor(rows.size() * spec.validationFraction());
    }

    /**
     * Reads a file that {@link LabelledFile} wrote, or JSON lines whose texts are the members that
     * {@code data.field} names, one or two with a comma between, and whose member of the name label
     * is the label.
     *
     * @param labels of the model
     * @throws DataException with all that does not fit the model
     */
    public static LabelledTexts open(DataSpec spec, List<String> labels) {
        LabelledFile file =
                spec.format() == DataFormat.JSONL ? lines(spec, labels) : prepared(spec);
        List<DataProblem> problems = new ArrayList<>();
        if (!file.labels().equals(labels)) {
            problems.add(
                    new DataProblem(
                            "model.labels",
                            "%s, as %s has them".formatted(file.labels(), spec.source()),
                            labels.toString(),
                            "name the same labels in the same order"));
        }
        int longest = 0;
        int largest = 0;
        for (LabelledRow row : file.rows()) {
            longest = Math.max(longest, row.tokens().length);
            largest = Math.max(largest, Arrays.stream(row.tokens()).max().orElse(0));
        }
        if (longest > spec.context()) {
            problems.add(
                    new DataProblem(
                            "model.context",
                            "at least the %d tokens of the longest text of %s"
                                    .formatted(longest, spec.source()),
                            "" + spec.context(),
                            "prepare the texts with --context " + spec.context()));
        }
        if (largest >= spec.vocabulary()) {
            problems.add(
                    new DataProblem(
                            "model.vocabulary",
                            "above %d, a token of %s".formatted(largest, spec.source()),
                            "" + spec.vocabulary(),
                            "set model.vocabulary = " + (largest + 1)));
        }
        var texts = new LabelledTexts(spec, file.rows());
        if (texts.training == 0 && spec.validationFraction() < 1) {
            problems.add(
                    new DataProblem(
                            "data.source", "texts to train on", "none in " + spec.source(), ""));
        }
        if (!problems.isEmpty()) {
            throw new DataException(problems);
        }
        return texts;
    }

    private static LabelledFile prepared(DataSpec spec) {
        try {
            return LabelledFile.read(spec.source());
        } catch (StoredFileException e) {
            throw new DataException(
                    List.of(
                            new DataProblem(
                                    "data.source",
                                    "texts with labels",
                                    String.valueOf(e.getMessage()),
                                    "make it with penstock data prepare --label")));
        }
    }

    private static LabelledFile lines(DataSpec spec, List<String> labels) {
        List<String> fields =
                Arrays.stream(spec.field().split(",")).map(String::strip).distinct().toList();
        if (fields.size() > 2) {
            throw new DataException(
                    List.of(
                            new DataProblem(
                                    "data.field",
                                    "one member or two that are texts",
                                    spec.field(),
                                    "such as \"premise, hypothesis\"")));
        }
        PairEncoder encoder = PairEncoder.of(spec.tokenizer());
        List<LabelledLines.Line> read =
                new LabelledLines(fields, "label").read(spec.source(), true);
        List<String> others =
                read.stream()
                        .map(LabelledLines.Line::label)
                        .filter(label -> !labels.contains(label))
                        .distinct()
                        .toList();
        if (!others.isEmpty()) {
            throw new DataException(
                    List.of(
                            new DataProblem(
                                    "model.labels",
                                    "all labels of %s, also %s".formatted(spec.source(), others),
                                    labels.toString(),
                                    "name them too")));
        }
        return new LabelledFile(
                labels,
                read.stream()
                        .map(
                                line ->
                                        encoder.encode(
                                                line.texts(),
                                                labels.indexOf(line.label()),
                                                spec.context()))
                        .toList());
    }

    /**
     * Returns rows as what is to be evaluated: all are held out, in their order.
     *
     * @param spec whose sizes are those of a pass
     */
    public static LabelledTexts toClassify(DataSpec spec, List<LabelledRow> rows) {
        return new LabelledTexts(spec, rows);
    }

    @Override
    public boolean inPlace() {
        return true;
    }

    @Override
    public boolean packed() {
        return true;
    }

    @Override
    public boolean masked() {
        return true;
    }

    @Override
    public boolean counts(int marks) {
        return (marks & UNCOUNTED) == 0;
    }

    /** Hands over every sequence of a micro-batch that exists, by its first index. */
    private void each(
            StepKind kind,
            long step,
            int microBatch,
            int length,
            BiConsumer<Integer, LabelledRow> work) {
        int width = spec.context() + 1;
        for (int b = 0; b < length / width; b++) {
            int row = number(kind, step, microBatch, b);
            if (row >= 0) {
                work.accept(b * width, rows.get(row));
            }
        }
    }

    /** Returns the number of a sequence's row; -1 if it does not exist. */
    private int number(StepKind kind, long step, int microBatch, int sequence) {
        long inStep = (long) microBatch * spec.sequencesPerMicroBatch() + sequence;
        if (kind == StepKind.EVALUATE) {
            long row = training + step * spec.sequences() + inStep;
            return row < rows.size() ? (int) row : -1;
        }
        long drawn = (step - 1) * spec.sequences() + inStep;
        long key = Permutation.mix(spec.seed()) ^ Permutation.mix(~(drawn / training));
        return (int) new Permutation(training, key).at(drawn % training);
    }

    @Override
    public void read(StepKind kind, long step, int microBatch, int[] batch) {
        Arrays.fill(batch, 0);
        each(
                kind,
                step,
                microBatch,
                batch.length,
                (first, row) -> batch[first] = Math.max(0, row.label()));
    }

    @Override
    public void inputs(StepKind kind, long step, int microBatch, int[] batch) {
        Arrays.fill(batch, 0);
        each(
                kind,
                step,
                microBatch,
                batch.length,
                (first, row) ->
                        System.arraycopy(row.tokens(), 0, batch, first, row.tokens().length));
    }

    @Override
    public void marks(StepKind kind, long step, int microBatch, byte[] batch) {
        Arrays.fill(batch, UNCOUNTED);
        each(
                kind,
                step,
                microBatch,
                batch.length,
                (first, row) -> {
                    batch[first] = BEGINS;
                    int end = row.tokens().length;
                    Arrays.fill(
                            batch, first + row.second(), first + end, (byte) (UNCOUNTED | SECOND));
                    batch[first + end] |= BEGINS;
                });
    }

    @Override
    public int sequences(StepKind kind, long step, int full) {
        return kind == StepKind.TRAIN
                ? full
                : Math.clamp(rows.size() - training - step * spec.sequences(), 1, full);
    }

    @Override
    public int row(StepKind kind, long step, int microBatch, int sequence) {
        return kind == StepKind.TRAIN ? number(kind, step, microBatch, sequence) : -1;
    }

    @Override
    public int rows() {
        return training;
    }

    @Override
    public boolean isText() {
        return false;
    }

    @Override
    public boolean hasHeldOut() {
        return training < rows.size();
    }

    @Override
    public int heldOutBatches() {
        return Math.ceilDiv(rows.size() - training, spec.sequences());
    }

    @Override
    public long heldOutRows(int batches) {
        return Math.min(rows.size() - training, (long) batches * spec.sequences());
    }

    @Override
    public long stepsOfEpoch() {
        return Math.max(1, training / spec.sequences());
    }

    @Override
    public double meanTokens(int context) {
        return rows.stream().mapToInt(row -> row.tokens().length).average().orElse(context);
    }

    @Override
    public long trainingTokens() {
        return rows.subList(0, training).stream().mapToLong(row -> row.tokens().length).sum();
    }

    @Override
    public long heldOutBytes(long sequences) {
        return 0; // a class stands for no bytes
    }

    @Override
    public long heldOutTargets(long first, long sequences) {
        return Math.clamp(rows.size() - training - first, 0, sequences);
    }

    @Override
    public Optional<CountedTargets> counted() {
        return Optional.empty();
    }

    @Override
    public String description() {
        return "%,d texts with labels: %,d to train on, %,d held out"
                .formatted(rows.size(), training, rows.size() - training);
    }
}
