package dev.penstock.runtime.data;

import java.util.List;
import java.util.function.Supplier;

/**
 * A part of a corpus, read but not encoded yet.
 *
 * @param start where it begins
 * @param bytes of text that are in memory for it
 * @param work encodes it; any thread may do it
 */
record Stretch(CorpusPlace start, long bytes, Supplier<Encoded> work) {
    /**
     * A document, or a part of one.
     *
     * @param begins whether the document begins with it
     * @param counted whether its tokens are what a model learns to say
     */
    record Part(boolean begins, int[] tokens, boolean counted) {
        Part(boolean begins, int[] tokens) {
            this(begins, tokens, true);
        }
    }

    /**
     * What became of a stretch.
     *
     * @param problems what is wrong with it
     */
    record Encoded(List<Part> parts, List<DataProblem> problems) {
        static Encoded wrong(DataProblem problem) {
            return new Encoded(List.of(), List.of(problem));
        }
    }

    /** A stretch that could not be read. */
    static Stretch wrong(CorpusPlace start, DataProblem problem) {
        return new Stretch(start, 0, () -> Encoded.wrong(problem));
    }
}
