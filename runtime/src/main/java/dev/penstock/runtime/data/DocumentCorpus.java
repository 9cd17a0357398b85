package dev.penstock.runtime.data;

import dev.penstock.actors.spi.StepKind;
import dev.penstock.runtime.data.rows.DocumentRows;
import dev.penstock.runtime.data.rows.RowsApart;
import dev.penstock.runtime.data.rows.StepRows;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Text with one document in a row, which is padded with targets that do not count. The first
 * documents are to train on, the last ones held out; those of a step come together as {@link
 * StepRows} says, so that a micro-batch may be shorter than the context.
 */
final class DocumentCorpus implements TrainingData {
    private static final long HELD_OUT_ORDER = 0;

    /** In place of a row, behind the last one that is held out. */
    private static final int NONE = -1;

    private final DataSpec spec;
    private final RowsApart apart;
    private final TokenRow tokens;
    private final TokenRow marks;
    private final TextCorpus.Texts texts;
    private final DocumentRows training;
    private final DocumentRows heldOut;

    /** What was asked for last, as a step is read in many calls. */
    private volatile @Nullable Step latest;

    private DocumentCorpus(
            DataSpec spec,
            TokenRow tokens,
            TokenRow marks,
            TextCorpus.Texts texts,
            DocumentRows training,
            DocumentRows heldOut) {
        this.spec = spec;
        this.apart = spec.apart().orElseThrow();
        this.tokens = tokens;
        this.marks = marks;
        this.texts = texts;
        this.training = training;
        this.heldOut = heldOut;
    }

    /**
     * @param drawn the rows of the step, in the order in which they are drawn
     */
    private record Step(StepKind kind, long step, int[] drawn, StepRows rows) {
        boolean is(StepKind otherKind, long otherStep) {
            return kind == otherKind && step == otherStep;
        }
    }

    /**
     * @param marks say where documents begin
     */
    static DocumentCorpus of(
            DataSpec spec,
            TokenRow tokens,
            TokenRow marks,
            TextCorpus.Texts texts,
            List<DataProblem> problems) {
        long size = tokens.size();
        long border = size - (long) Math.floor(size * spec.validationFraction());
        DocumentRows training = rows(spec, marks, 0, border);
        DocumentRows heldOut = rows(spec, marks, border, size);
        problems.addAll(TextCorpus.vocabularyProblems(spec));
        if (spec.validationFraction() < 1 && training.count() == 0) {
            problems.add(
                    new DataProblem(
                            "data.source",
                            "documents of two tokens or more to train on",
                            "none in " + spec.source(),
                            "use more text"));
        }
        if (spec.validationFraction() > 0 && heldOut.count() == 0) {
            problems.add(
                    new DataProblem(
                            "data.validation-fraction",
                            "documents of two tokens or more held out",
                            "none in the last %d of %d tokens".formatted(size - border, size),
                            "use a larger fraction or more text, or 0 to hold out none"));
        }
        if (!problems.isEmpty()) {
            throw new DataException(problems);
        }
        return new DocumentCorpus(spec, tokens, marks, texts, training, heldOut);
    }

    private static DocumentRows rows(DataSpec spec, TokenRow marks, long from, long to) {
        return DocumentRows.of(token -> (marks.get(token) & BEGINS) != 0, from, to, spec.context());
    }

    private DocumentRows rows(StepKind kind) {
        return kind == StepKind.TRAIN ? training : heldOut;
    }

    private int row(StepKind kind, long sequence) {
        if (kind == StepKind.TRAIN) {
            return training.drawn(sequence, spec.seed());
        }
        return sequence < heldOut.count() ? heldOut.drawn(sequence, HELD_OUT_ORDER) : NONE;
    }

    /** A row that is not there is as short as one can be, and nothing of it counts. */
    private int length(StepKind kind, int row) {
        return row == NONE ? 1 : rows(kind).length(row);
    }

    private Step step(StepKind kind, long step) {
        Step known = latest;
        if (known != null && known.is(kind, step)) {
            return known;
        }
        if (rows(kind).count() == 0) {
            throw new IllegalStateException(
                    "no documents for this: data.validation-fraction is "
                            + spec.validationFraction());
        }
        long first = (kind == StepKind.TRAIN ? step - 1 : step) * spec.sequences();
        int[] drawn = new int[spec.sequences()];
        int[] lengths = new int[spec.sequences()];
        for (int i = 0; i < drawn.length; i++) {
            drawn[i] = row(kind, first + i);
            lengths[i] = length(kind, drawn[i]);
        }
        StepRows rows = StepRows.of(lengths, spec.microBatches(), spec.context(), apart);
        Step read = new Step(kind, step, drawn, rows);
        latest = read;
        return read;
    }

    @Override
    public void read(StepKind kind, long step, int microBatch, int[] batch) {
        spec.requireWholeRows(batch);
        Arrays.fill(batch, 0);
        Step read = step(kind, step);
        int[] inMicroBatch = read.rows.rows().get(microBatch);
        for (int i = 0; i < inMicroBatch.length; i++) {
            int row = read.drawn[inMicroBatch[i]];
            if (row != NONE) {
                tokens.copy(
                        rows(kind).start(row),
                        batch,
                        i * (spec.context() + 1),
                        rows(kind).length(row) + 1);
            }
        }
    }

    @Override
    public int row(StepKind kind, long step, int microBatch, int sequence) {
        if (kind == StepKind.EVALUATE) {
            return NONE;
        }
        Step read = step(kind, step);
        return read.drawn[read.rows.rows().get(microBatch)[sequence]];
    }

    @Override
    public int rows() {
        return training.count();
    }

    @Override
    public boolean unequal() {
        return !apart.padded();
    }

    @Override
    public int tokens(StepKind kind, long step, int microBatch, int context) {
        return apart.padded() ? context : step(kind, step).rows.tokens()[microBatch];
    }

    /** Padding does not count. */
    @Override
    public boolean masked() {
        return true;
    }

    @Override
    public void marks(StepKind kind, long step, int microBatch, byte[] batch) {
        Arrays.fill(batch, UNCOUNTED);
        Step read = step(kind, step);
        int[] inMicroBatch = read.rows.rows().get(microBatch);
        for (int i = 0; i < inMicroBatch.length; i++) {
            int row = read.drawn[inMicroBatch[i]];
            if (row == NONE) {
                continue;
            }
            long start = rows(kind).start(row);
            for (int t = 1; t <= rows(kind).length(row); t++) {
                batch[i * (spec.context() + 1) + t] = (byte) (marks.get(start + t) & UNCOUNTED);
            }
        }
    }

    private int counted(DocumentRows rows, int row) {
        int count = 0;
        for (int t = 1; t <= rows.length(row); t++) {
            count += (marks.get(rows.start(row) + t) & UNCOUNTED) == 0 ? 1 : 0;
        }
        return count;
    }

    @Override
    public boolean hasHeldOut() {
        return heldOut.count() > 0;
    }

    @Override
    public int heldOutBatches() {
        return Math.ceilDiv(heldOut.count(), spec.sequences());
    }

    @Override
    public long heldOutRows(int batches) {
        return Math.min(heldOut.count(), (long) batches * spec.sequences());
    }

    @Override
    public long stepsOfEpoch() {
        return Math.max(1, Math.ceilDiv(training.count(), spec.sequences()));
    }

    @Override
    public long trainingTokens() {
        return training.tokens();
    }

    @Override
    public double meanTokens(int context) {
        return (double) training.tokens() / Math.max(1, training.count());
    }

    @Override
    public long heldOutBytes(long sequences) {
        int end = spec.tokenizer().endOfText().orElse(-1);
        Map<Integer, Integer> lengths = new HashMap<>();
        long bytes = 0;
        for (long sequence = 0; sequence < Math.min(sequences, heldOut.count()); sequence++) {
            int row = row(StepKind.EVALUATE, sequence);
            for (int t = 1; t <= heldOut.length(row); t++) {
                long at = heldOut.start(row) + t;
                int token = tokens.get(at);
                bytes +=
                        token == end || (marks.get(at) & UNCOUNTED) != 0
                                ? 0
                                : lengths.computeIfAbsent(
                                        token, each -> spec.tokenizer().bytes(each).length);
            }
        }
        return bytes;
    }

    @Override
    public long heldOutTargets(long first, long sequences) {
        long count = 0;
        long end = Math.min(first + sequences, heldOut.count());
        for (long sequence = first; sequence < end; sequence++) {
            count += counted(heldOut, row(StepKind.EVALUATE, sequence));
        }
        return count;
    }

    @Override
    public Optional<CountedTargets> counted() {
        if (!spec.marking().answers() || training.count() == 0) {
            return Optional.empty();
        }
        long targets = 0;
        long silent = 0;
        for (int row = 0; row < training.count(); row++) {
            int here = counted(training, row);
            targets += here;
            silent += here == 0 ? 1 : 0;
        }
        return Optional.of(
                new CountedTargets(
                        texts.chats(),
                        texts.silent(),
                        targets,
                        training.count(),
                        silent,
                        isReached()));
    }

    private boolean isReached() {
        long read = Math.min(training.count(), spec.steps() * spec.sequences());
        for (long sequence = 0; sequence < read; sequence++) {
            if (counted(training, row(StepKind.TRAIN, sequence)) > 0) {
                return true;
            }
        }
        return false;
    }

    @Override
    public String description() {
        List<String> parts = new ArrayList<>();
        parts.add(texts.description(spec, tokens.size()));
        parts.add(
                "%,d rows of one document to train on, %,d held out"
                        .formatted(training.count(), heldOut.count()));
        if (training.count() > 0) {
            parts.add(
                    "of %.0f tokens on average, %.0f %% of model.context"
                            .formatted(
                                    meanTokens(spec.context()),
                                    100 * meanTokens(spec.context()) / spec.context()));
        }
        if (unequal()) {
            parts.add("micro-batches of multiples of %,d tokens".formatted(apart.lengthStep()));
        }
        return String.join(", ", parts).replaceFirst(", ", ": ") + texts.ofChats(counted());
    }
}
