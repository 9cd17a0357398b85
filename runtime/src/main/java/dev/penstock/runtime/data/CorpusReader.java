package dev.penstock.runtime.data;

import dev.penstock.runtime.data.Stretch.Encoded;
import dev.penstock.runtime.data.Stretch.Part;
import dev.penstock.runtime.tokenizer.Tokenizer;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Reads files into tokens, documents joined by the tokenizer's separator. Continues after a problem
 * to find the next one. Not thread-safe.
 */
final class CorpusReader {
    private static final int MOST_THREADS = 4;

    /** More than the largest sum of marks. */
    private static final int MARKS = 4;

    private final Optional<DataFormat> format;
    private final String field;
    private final Tokenizer tokenizer;
    private final Marking marking;
    private final Tokens tokens;

    /** A row of marks, one for each token; null if nobody asks. */
    private final @Nullable Tokens marks;

    private final List<DataProblem> problems = new ArrayList<>();
    private boolean begins;
    private long documents;
    private long silent;

    /** Whether the last document has nothing that counts so far. */
    private boolean isSilent;

    /** The mark of what is no answer, or comes after what is none. */
    private int uncounted;

    CorpusReader(DataSpec spec) {
        this(Optional.of(spec.format()), spec.field(), spec.tokenizer(), spec.marking());
    }

    /**
     * @param format of all files; empty: each by its name
     */
    CorpusReader(Optional<DataFormat> format, String field, Tokenizer tokenizer) {
        this(format, field, tokenizer, Marking.NONE);
    }

    private CorpusReader(
            Optional<DataFormat> format, String field, Tokenizer tokenizer, Marking marking) {
        this.format = format;
        this.field = field;
        this.tokenizer = tokenizer;
        this.marking = marking;
        this.tokens = new Tokens(tokenizer.vocabulary());
        marks = marking.any() ? new Tokens(MARKS) : null;
    }

    /**
     * Returns all tokens of the files.
     *
     * @throws DataException with the problems of all files, the first few of them
     */
    Tokens read(List<Path> files) {
        int threads = Math.min(MOST_THREADS, Runtime.getRuntime().availableProcessors());
        try {
            new Corpus(files, format, field, marking.template())
                    .encode(tokenizer, tokenizer.name(), CorpusPlace.START, threads, this::take);
        } catch (IOException e) {
            throw new IllegalStateException("nothing is written here", e);
        }
        if (!problems.isEmpty()) {
            throw new DataException(problems);
        }
        return tokens;
    }

    private boolean take(CorpusPlace start, Encoded encoded) {
        for (DataProblem problem : encoded.problems()) {
            if (problems.size() < Corpus.SHOWN) {
                problems.add(problem);
            }
        }
        for (Part part : encoded.parts()) {
            if (part.begins() && tokens.size() > 0) {
                add(tokenizer.documentSeparator(), uncounted);
            }
            begins |= part.begins();
            if (part.begins()) {
                documents++;
                silent += isSilent ? 1 : 0;
            }
            isSilent = !part.counted() && (part.begins() || isSilent);
            uncounted = part.counted() || !marking.answers() ? 0 : BatchSource.UNCOUNTED;
            for (int token : part.tokens()) {
                add(token, (begins ? BatchSource.BEGINS : 0) + uncounted);
                begins = false;
            }
        }
        return problems.size() < Corpus.SHOWN;
    }

    private void add(int token, int mark) {
        tokens.add(token);
        if (marks != null) {
            marks.add(mark);
        }
    }

    /** Returns how many documents were read. */
    long documents() {
        return documents;
    }

    /** Returns how many of them have nothing that counts. */
    long silentDocuments() {
        return silent + (isSilent ? 1 : 0);
    }

    /** Returns the marks of what was read, if they are asked for. */
    @Nullable TokenRow marks() {
        return marks;
    }
}
