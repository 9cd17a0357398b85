package dev.penstock.runtime.data;

/**
 * A place in a corpus from which it can be read on.
 *
 * @param file index of the file
 * @param offset bytes of the file, expanded where it is compressed; 0 for tables
 * @param row lines, or rows of a table, before it; 0 for plain text
 * @param inDocument whether a document that began earlier continues here
 */
record CorpusPlace(int file, long offset, long row, boolean inDocument) {
    static final CorpusPlace START = new CorpusPlace(0, 0, 0, false);

    /** The beginning of a file. */
    static CorpusPlace startOf(int file) {
        return new CorpusPlace(file, 0, 0, false);
    }
}
