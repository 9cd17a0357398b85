package dev.penstock.runtime.model.layers;

import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.PartTokens.Run;
import dev.penstock.runtime.model.shape.TokenPlaces;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntPredicate;

/**
 * The documents that share the rows of a step. Each is for itself: its places are counted from its
 * own first token, and its tokens do not see those of others.
 *
 * <pre>
 *   a row of 8 tokens     a b c | d e | f g h
 *   places                0 1 2   0 1   0 1 2
 * </pre>
 */
public final class PackedRows implements TokenPlaces {
    private final BatchShape batch;

    /** Of every token of the step, the token of its row with which its document begins. */
    private final int[] documents;

    private int microBatch;

    public PackedRows(BatchShape batch) {
        this(batch, new int[batch.tokensPerStep()]);
    }

    private PackedRows(BatchShape batch, int[] documents) {
        this.batch = batch;
        this.documents = documents;
    }

    /** Returns the same rows for somebody else, who is at a unit of their own. */
    public PackedRows beside() {
        return new PackedRows(batch, documents);
    }

    /**
     * Takes the borders of a row's documents. One begins with the row in any case.
     *
     * @param begins whether a document begins with a token of the row
     */
    public void fill(int ofMicroBatch, int sequence, IntPredicate begins) {
        int row = row(ofMicroBatch, sequence);
        int document = 0;
        for (int token = 0; token < batch.context(); token++) {
            document = begins.test(token) ? token : document;
            documents[row + token] = document;
        }
    }

    /** A unit of this micro-batch is next. */
    public void at(int newMicroBatch) {
        microBatch = newMicroBatch;
    }

    /**
     * A run of a unit's rows that are of one document.
     *
     * @param firstRow in the unit
     * @param document the token of the sequence with which it begins
     * @param place of the first row in the document
     */
    record Piece(int sequence, int firstRow, int tokens, int document, int place) {
        /** Returns how many tokens of the document its last row sees. */
        int seen() {
            return place + tokens;
        }
    }

    /**
     * Cuts a unit at the borders of documents and at the lines of its grid, in the order of
     * summation: pieces and their order are the same whatever the slices, if those end on the grid.
     */
    List<Piece> pieces(TokenBlocks unit) {
        List<Piece> pieces = new ArrayList<>();
        for (int block = 0; block < unit.count(); block++) {
            int row = unit.firstRow(block);
            int end = row + unit.rowsOf(block);
            int sequence = row / unit.tokens();
            int ofStep = row(microBatch, sequence) + unit.firstToken() - sequence * unit.tokens();
            while (row < end) {
                int document = documents[ofStep + row];
                int to = row + 1;
                while (to < end && documents[ofStep + to] == document) {
                    to++;
                }
                int token = row % unit.tokens() + unit.firstToken();
                pieces.add(new Piece(sequence, row, to - row, document, token - document));
                row = to;
            }
        }
        return pieces;
    }

    @Override
    public List<Run> ofUnit(TokenBlocks unit) {
        return pieces(unit).stream()
                .map(piece -> new Run(piece.firstRow(), piece.place(), piece.tokens()))
                .toList();
    }

    private int row(int ofMicroBatch, int sequence) {
        return (ofMicroBatch * batch.sequences() + sequence) * batch.context();
    }
}
