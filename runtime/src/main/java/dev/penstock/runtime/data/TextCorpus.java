package dev.penstock.runtime.data;

import dev.penstock.actors.spi.StepKind;
import dev.penstock.runtime.data.rows.Permutation;
import dev.penstock.runtime.data.rows.Windows;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import org.jspecify.annotations.Nullable;

/**
 * Text as tokens, in memory or mapped: the first part to train on, the last held out. Training
 * sequences come in the order of {@link Windows}; held-out batches are the same in every evaluation
 * and for every seed, spread over the held-out part, and the last of them has what is left, so that
 * no window is evaluated twice.
 */
final class TextCorpus implements TrainingData {
    private static final long HELD_OUT_ORDER = 0;

    private final DataSpec spec;
    private final TokenRow tokens;

    /** One for each token; null if nobody asks. */
    private final @Nullable TokenRow marks;

    private final Texts texts;
    private final long trainingTokens;
    private final Windows training;
    private final Permutation heldOut;
    private final long heldOutWindows;

    private TextCorpus(
            DataSpec spec,
            TokenRow tokens,
            @Nullable TokenRow marks,
            Texts texts,
            long trainingTokens) {
        this.spec = spec;
        this.tokens = tokens;
        this.marks = marks;
        this.texts = texts;
        this.trainingTokens = trainingTokens;
        this.training = new Windows(0, trainingTokens, spec.context(), spec.seed());
        this.heldOutWindows = Math.max(0, (heldOutTokens() - 1) / spec.context());
        this.heldOut = new Permutation(Math.max(1, heldOutWindows), HELD_OUT_ORDER);
    }

    /**
     * What the tokens are of.
     *
     * @param chats 0 of what is not chats
     * @param silent chats without an answer
     */
    record Texts(int files, long chats, long silent) {
        /** Returns for people how much there is. */
        String description(DataSpec spec, long tokens) {
            return "%,d tokens (%s) of %d %s"
                    .formatted(
                            tokens, spec.tokenizer().name(), files, files == 1 ? "file" : "files");
        }

        /** Returns for people what is to be said of chats; empty where there are none. */
        String ofChats(Optional<CountedTargets> counted) {
            if (chats == 0) {
                return "";
            }
            return "; %,d %s".formatted(chats, chats == 1 ? "chat" : "chats")
                    + counted.map(
                                    all ->
                                            ", %,d answer tokens to train on count"
                                                    .formatted(all.targets()))
                            .orElse("");
        }
    }

    static TrainingData open(DataSpec spec) {
        if (PreparedTokens.areIn(spec.source())) {
            throw new DataException(
                    List.of(
                            new DataProblem(
                                    "data.format",
                                    "tokens, which %s holds".formatted(spec.source()),
                                    spec.format().name().toLowerCase(Locale.ROOT),
                                    "set data.format = tokens")));
        }
        List<Path> files = CorpusFiles.find(spec.source());
        var reader = new CorpusReader(spec);
        Tokens tokens = reader.read(files);
        boolean chats = spec.format() == DataFormat.CHAT;
        var texts =
                new Texts(
                        files.size(),
                        chats ? reader.documents() : 0,
                        chats ? reader.silentDocuments() : 0);
        return either(spec, tokens, reader.marks(), texts, new ArrayList<>());
    }

    /** Rows of text, or of one document each. */
    private static TrainingData either(
            DataSpec spec,
            TokenRow tokens,
            @Nullable TokenRow marks,
            Texts texts,
            List<DataProblem> problems) {
        return marks != null && spec.apart().isPresent()
                ? DocumentCorpus.of(spec, tokens, marks, texts, problems)
                : of(spec, tokens, marks, texts, problems);
    }

    /** Opens what {@link DataPreparation} made; takes no heap. */
    static TrainingData openPrepared(DataSpec spec) {
        PreparedTokens tokens = PreparedTokens.open(spec.source());
        List<DataProblem> problems = new ArrayList<>();
        if (!tokens.fingerprint().equals(spec.tokenizer().fingerprint())) {
            problems.add(
                    new DataProblem(
                            "data.tokenizer",
                            "that of %s, %s".formatted(spec.source(), tokens.tokenizer()),
                            spec.tokenizer().name(),
                            "set it to the tokenizer for which they were prepared"));
        }
        OptionalInt end = spec.tokenizer().endOfText();
        if (spec.marking().documents() && end.isEmpty()) {
            problems.add(
                    new DataProblem(
                            "data.packing",
                            "tokens whose documents end with a token of its own",
                            "%s, prepared with %s".formatted(spec.source(), tokens.tokenizer()),
                            "prepare them with another tokenizer, read the text itself, or use"
                                    + " data.packing = none"));
        }
        if (spec.marking().answers()) {
            problems.add(
                    new DataProblem(
                            "data.loss",
                            "all, as prepared tokens do not say which are answers",
                            "answers",
                            "read the chats themselves: data.format = chat"));
        }
        TokenRow marks =
                spec.marking().documents() && end.isPresent()
                        ? new Endings(tokens, end.getAsInt())
                        : null;
        return either(spec, tokens, marks, new Texts(tokens.shards(), 0, 0), problems);
    }

    /** The marks of tokens among which one ends a document wherever it is. */
    private record Endings(TokenRow tokens, int end) implements TokenRow {
        @Override
        public long size() {
            return tokens.size();
        }

        @Override
        public int get(long index) {
            return index == 0 || tokens.get(index - 1) == end ? BatchSource.BEGINS : 0;
        }
    }

    /**
     * Opens a row that is there already, of which nothing else is known.
     *
     * @param name for problems
     */
    static TextCorpus of(DataSpec spec, TokenRow tokens, String name) {
        long heldOut = heldOut(spec, tokens);
        requireNone(problems(spec, name, tokens.size(), heldOut));
        return new TextCorpus(spec, tokens, null, new Texts(1, 0, 0), tokens.size() - heldOut);
    }

    private static TextCorpus of(
            DataSpec spec,
            TokenRow tokens,
            @Nullable TokenRow marks,
            Texts texts,
            List<DataProblem> problems) {
        long heldOut = heldOut(spec, tokens);
        problems.addAll(problems(spec, spec.source().toString(), tokens.size(), heldOut));
        requireNone(problems);
        return new TextCorpus(spec, tokens, marks, texts, tokens.size() - heldOut);
    }

    private static long heldOut(DataSpec spec, TokenRow tokens) {
        return (long) Math.floor(tokens.size() * spec.validationFraction());
    }

    private static void requireNone(List<DataProblem> problems) {
        if (!problems.isEmpty()) {
            throw new DataException(problems);
        }
    }

    private static List<DataProblem> problems(DataSpec spec, String name, long size, long heldOut) {
        List<DataProblem> problems = new ArrayList<>();
        int wanted = spec.context() + 1;
        if (spec.validationFraction() < 1 && size - heldOut < wanted) {
            problems.add(
                    new DataProblem(
                            "data.source",
                            "at least %d tokens to train on (model.context + 1)".formatted(wanted),
                            "%s with only %d".formatted(name, size - heldOut),
                            "use more text or a smaller model.context"));
        }
        if (spec.validationFraction() > 0 && heldOut < wanted) {
            problems.add(
                    new DataProblem(
                            "data.validation-fraction",
                            "at least %d tokens held out (model.context + 1)".formatted(wanted),
                            "%d of %d".formatted(heldOut, size),
                            spec.validationFraction() < 1
                                    ? "use a larger fraction or more text, or 0 to hold out none"
                                    : "use more text"));
        }
        problems.addAll(vocabularyProblems(spec));
        return problems;
    }

    /** Returns whether there is no room for the tokenizer's tokens. */
    static List<DataProblem> vocabularyProblems(DataSpec spec) {
        boolean ofTokenizer = spec.format() != DataFormat.GIVEN;
        if (ofTokenizer && spec.vocabulary() < spec.tokenizer().vocabulary()) {
            return List.of(
                    new DataProblem(
                            "model.vocabulary",
                            "at least %d, the number of tokens of %s"
                                    .formatted(
                                            spec.tokenizer().vocabulary(), spec.tokenizer().name()),
                            Integer.toString(spec.vocabulary()),
                            "omit model.vocabulary"));
        }
        return List.of();
    }

    @Override
    public void read(StepKind kind, long step, int microBatch, int[] batch) {
        int row = spec.context() + 1;
        spec.requireWholeRows(batch);
        long first = firstSequence(kind, step);
        first += (long) microBatch * spec.sequencesPerMicroBatch();
        for (int i = 0; i < batch.length / row; i++) {
            tokens.copy(start(kind, first + i), batch, i * row, row);
        }
    }

    @Override
    public boolean packed() {
        return spec.marking().documents();
    }

    @Override
    public boolean masked() {
        return spec.marking().answers();
    }

    @Override
    public void marks(StepKind kind, long step, int microBatch, byte[] batch) {
        int row = spec.context() + 1;
        long first = firstSequence(kind, step);
        first += (long) microBatch * spec.sequencesPerMicroBatch();
        for (int i = 0; i < batch.length / row; i++) {
            long start = start(kind, first + i);
            for (int t = 0; t < row; t++) {
                batch[i * row + t] = (byte) mark(start + t);
            }
        }
    }

    private int mark(long index) {
        return marks == null ? 0 : marks.get(index);
    }

    private long firstSequence(StepKind kind, long step) {
        requireAny(kind);
        long before = kind == StepKind.TRAIN ? step - 1 : step;
        if (!lastIsSmaller(kind)) {
            return before * spec.sequences();
        }
        long steps = stepsOfEpoch(kind);
        return before / steps * windows(kind) + before % steps * spec.sequences();
    }

    @Override
    public int sequences(StepKind kind, long step, int full) {
        if (!lastIsSmaller(kind)) {
            return full;
        }
        long first = firstSequence(kind, step) % windows(kind);
        return (int) Math.min(full, windows(kind) - first);
    }

    /** A mean over what is held out has nothing twice; a step of training may go on with more. */
    private boolean lastIsSmaller(StepKind kind) {
        return kind == StepKind.EVALUATE || spec.smallerLast();
    }

    private long windows(StepKind kind) {
        return kind == StepKind.TRAIN ? training.count() : heldOutWindows;
    }

    private long stepsOfEpoch(StepKind kind) {
        return Math.ceilDiv(windows(kind), spec.sequences());
    }

    @Override
    public long stepsOfEpoch() {
        return stepsOfEpoch(StepKind.TRAIN);
    }

    @Override
    public int heldOutBatches() {
        return (int) Math.min(Integer.MAX_VALUE, stepsOfEpoch(StepKind.EVALUATE));
    }

    @Override
    public long heldOutRows(int batches) {
        return Math.min(heldOutWindows, (long) batches * spec.sequences());
    }

    private long start(StepKind kind, long sequence) {
        return switch (kind) {
            case TRAIN -> training.start(sequence);
            case EVALUATE ->
                    trainingTokens + heldOut.at(sequence % heldOutWindows) * spec.context();
        };
    }

    private void requireAny(StepKind kind) {
        if (kind == StepKind.EVALUATE && !hasHeldOut()) {
            throw new IllegalStateException("no held-out data: data.validation-fraction is 0");
        }
    }

    @Override
    public boolean hasHeldOut() {
        return heldOutWindows > 0;
    }

    /**
     * The first token of a window is not a target, unless it is also the last one of the previous
     * window.
     */
    @Override
    public long heldOutBytes(long sequences) {
        int end = spec.tokenizer().endOfText().orElse(-1);
        Map<Integer, Integer> lengths = new HashMap<>();
        long bytes = 0;
        for (long sequence = 0; sequence < Math.min(sequences, heldOutWindows); sequence++) {
            long start = start(StepKind.EVALUATE, sequence);
            for (int i = 1; i <= spec.context(); i++) {
                int token = tokens.get(start + i);
                bytes +=
                        token == end || !counts(mark(start + i))
                                ? 0
                                : lengths.computeIfAbsent(
                                        token, t -> spec.tokenizer().bytes(t).length);
            }
        }
        return bytes;
    }

    @Override
    public long heldOutTargets(long first, long sequences) {
        long end = Math.min(first + sequences, heldOutWindows);
        if (marks == null) {
            return Math.max(0, end - first) * spec.context();
        }
        long count = 0;
        for (long sequence = first; sequence < end; sequence++) {
            count += counted(start(StepKind.EVALUATE, sequence));
        }
        return count;
    }

    /** Targets of a row that count. */
    private int counted(long start) {
        int count = 0;
        for (int i = 1; i <= spec.context(); i++) {
            count += counts(mark(start + i)) ? 1 : 0;
        }
        return count;
    }

    /** Rows as they are before the first shift. */
    @Override
    public Optional<CountedTargets> counted() {
        if (marks == null || !spec.marking().answers() || trainingTokens == 0) {
            return Optional.empty();
        }
        long targets = 0;
        long rows = 0;
        long silent = 0;
        for (long start = 0; start + spec.context() < trainingTokens; start += spec.context()) {
            int here = counted(start);
            targets += here;
            rows++;
            silent += here == 0 ? 1 : 0;
        }
        for (long i = rows * spec.context() + 1; i < trainingTokens; i++) {
            targets += counts(mark(i)) ? 1 : 0;
        }
        return Optional.of(
                new CountedTargets(texts.chats, texts.silent, targets, rows, silent, isReached()));
    }

    /** Two epochs have all that the others have, but for a shift of the rows. */
    private boolean isReached() {
        long read = Math.min(2 * training.count(), spec.steps() * spec.sequences());
        for (long sequence = 0; sequence < read; sequence++) {
            if (counted(training.start(sequence)) > 0) {
                return true;
            }
        }
        return false;
    }

    @Override
    public long trainingTokens() {
        return trainingTokens;
    }

    private long heldOutTokens() {
        return tokens.size() - trainingTokens;
    }

    @Override
    public String description() {
        return "%s: %,d to train on, %,d held out%s"
                .formatted(
                        texts.description(spec, tokens.size()),
                        trainingTokens,
                        heldOutTokens(),
                        texts.ofChats(counted()));
    }
}
