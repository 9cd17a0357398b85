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

    /** Of every token of the step, its type. */
    private final byte[] types;

    private final boolean whole;
    private int microBatch;

    /**
     * @param whole whether tokens see the later ones of their documents, which are not cut then;
     *     these tokens have types
     */
    public PackedRows(BatchShape batch, boolean whole) {
        this(
                batch,
                whole,
                new int[batch.tokensPerStep()],
                new byte[whole ? batch.tokensPerStep() : 0]);
    }

    private PackedRows(BatchShape batch, boolean whole, int[] documents, byte[] types) {
        this.batch = batch;
        this.whole = whole;
        this.documents = documents;
        this.types = types;
    }

    /** Returns the same rows for somebody else, who is at a unit of their own. */
    public PackedRows beside() {
        return new PackedRows(batch, whole, documents, types);
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

    /**
     * Takes the types of a row's tokens.
     *
     * @param second whether a token of the row has the second one; otherwise it has the first
     */
    public void types(int ofMicroBatch, int sequence, IntPredicate second) {
        for (int token = 0; whole && token < batch.context(); token++) {
            types[row(ofMicroBatch, sequence) + token] = (byte) (second.test(token) ? 1 : 0);
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
     * Cuts a unit at the borders of documents and, unless they stay whole, at the lines of its
     * grid, in the order of summation: pieces and their order are the same whatever the slices, if
     * those end on the grid.
     */
    List<Piece> pieces(TokenBlocks unit) {
        TokenBlocks grid =
                whole
                        ? new TokenBlocks(
                                unit.sequences(), unit.tokens(), unit.firstToken(), batch.context())
                        : unit;
        List<Piece> pieces = new ArrayList<>();
        for (int block = 0; block < grid.count(); block++) {
            int row = grid.firstRow(block);
            int end = row + grid.rowsOf(block);
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

    @Override
    public boolean typed() {
        return whole;
    }

    @Override
    public List<Run> ofType(TokenBlocks unit, int type) {
        if (!whole) {
            return TokenPlaces.super.ofType(unit, type);
        }
        List<Run> runs = new ArrayList<>();
        int first = row(microBatch, 0); // sequences are not cut
        for (int row = 0; row < unit.rows(); ) {
            int to = row;
            while (to < unit.rows() && types[first + to] == type) {
                to++;
            }
            if (to > row) {
                runs.add(new Run(row, 0, to - row));
            }
            row = to + 1;
        }
        return runs;
    }

    private int row(int ofMicroBatch, int sequence) {
        return (ofMicroBatch * batch.sequences() + sequence) * batch.context();
    }
}
