package dev.penstock.runtime.model.layers;

import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.RetentionShape;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.runtime.model.activations.LayerActivations;
import java.util.List;
import java.util.function.Supplier;

/**
 * Retention over sequences of several documents: the state is 0 again where one begins. A unit is
 * cut at the borders of documents and at the lines of its grid, and a piece is a chunk. Kept is
 * what {@link Retention} keeps: the state at every line of the grid, which is that of the document
 * that runs over it.
 *
 * <pre>
 *   grid         |         |         |
 *   documents    a a a b b b b c d d d
 *   pieces       a a a|b b|b b|c|d|d d
 *   states       0         b         d      in front of each block; those of a, c and d begin as 0
 * </pre>
 *
 * @param whole computes what does not depend on borders
 * @param tokens of a sequence
 * @param rows of documents
 * @param state room for the states before and behind one piece {@code [2, ..]}
 */
public record PackedRetention(Retention whole, int tokens, PackedRows rows, Tensor state)
        implements Attention {
    @Override
    public void forward(Tensor qkv, LayerActivations a, TokenBlocks blocks) {
        Tensor states = states().get();
        for (PackedRows.Piece piece : rows.pieces(blocks).reversed()) { // blocks in their order
            begin(piece, states, blocks);
            TokenBlocks own = blocks(piece);
            kernels().retentionStates(ofDocument(qkv, piece), state, shape(), piece.tokens(), own);
            if (endsBlock(piece, blocks)) {
                kernels().copy(state.rows(1, 1), states.rows(behind(piece, blocks), 1));
            }
        }
        forwardAgain(qkv, a, blocks);
    }

    @Override
    public void forwardAgain(Tensor qkv, LayerActivations a, TokenBlocks blocks) {
        Tensor states = states().get();
        for (PackedRows.Piece piece : rows.pieces(blocks)) {
            begin(piece, states, blocks);
            kernels()
                    .retention(
                            ofDocument(qkv, piece),
                            state,
                            ofUnit(a.attended(), piece),
                            shape(),
                            piece.tokens(),
                            blocks(piece));
        }
        whole.normalise(qkv, a, blocks);
    }

    @Override
    public void backward(
            Tensor qkv, LayerActivations a, Tensor dAttended, Tensor dQkv, TokenBlocks blocks) {
        whole.normaliseBackward(qkv, a, dAttended, dQkv, blocks);
        Tensor states = states().get();
        boolean last = blocks.firstToken() + blocks.tokens() == tokens;
        List<PackedRows.Piece> pieces = rows.pieces(blocks);
        for (PackedRows.Piece piece : pieces) { // last blocks first
            begin(piece, states, blocks);
            boolean ends = endsBlock(piece, blocks);
            boolean continued = ends && !(last && isEnd(piece, blocks));
            if (continued) {
                kernels().copy(states.rows(behind(piece, blocks), 1), state.rows(1, 1));
            } else {
                kernels().zero(state.rows(1, 1));
            }
            kernels()
                    .retentionBackward(
                            ofDocument(qkv, piece),
                            state,
                            ofUnit(dAttended, piece),
                            ofDocument(dQkv, piece),
                            shape(),
                            piece.tokens(),
                            blocks(piece));
            if (beginsBlock(piece, blocks)) { // of what another document left nobody wants any
                Tensor before = states.rows(behind(piece, blocks) - blocks.sequences(), 1);
                if (piece.place() == 0) {
                    kernels().zero(before);
                } else {
                    kernels().copy(state.rows(0, 1), before);
                }
            }
        }
    }

    /** Takes the state before a piece. */
    private void begin(PackedRows.Piece piece, Tensor states, TokenBlocks blocks) {
        if (piece.place() == 0) {
            kernels().zero(state.rows(0, 1));
        } else {
            int before = behind(piece, blocks) - blocks.sequences();
            kernels().copy(states.rows(before, 1), state.rows(0, 1));
        }
    }

    /** Returns the row of the state behind a piece's block. */
    private static int behind(PackedRows.Piece piece, TokenBlocks blocks) {
        int block = token(piece, blocks) / blocks.grid() - blocks.firstToken() / blocks.grid();
        return (block + 1) * blocks.sequences() + piece.sequence();
    }

    /** Returns the token of the sequence with which a piece begins. */
    private static int token(PackedRows.Piece piece, TokenBlocks blocks) {
        return piece.firstRow() - piece.sequence() * blocks.tokens() + blocks.firstToken();
    }

    private static boolean beginsBlock(PackedRows.Piece piece, TokenBlocks blocks) {
        int token = token(piece, blocks);
        return token == blocks.firstToken() || token % blocks.grid() == 0;
    }

    private static boolean endsBlock(PackedRows.Piece piece, TokenBlocks blocks) {
        int end = token(piece, blocks) + piece.tokens();
        return isEnd(piece, blocks) || end % blocks.grid() == 0;
    }

    private static boolean isEnd(PackedRows.Piece piece, TokenBlocks blocks) {
        int end = token(piece, blocks) + piece.tokens();
        return end == blocks.firstToken() + blocks.tokens();
    }

    private Tensor ofDocument(Tensor ofMicroBatch, PackedRows.Piece piece) {
        int first = piece.sequence() * tokens + piece.document() + piece.place();
        return ofMicroBatch.rows(first, piece.tokens());
    }

    private static Tensor ofUnit(Tensor tensor, PackedRows.Piece piece) {
        return tensor.rows(piece.firstRow(), piece.tokens());
    }

    /** One chunk at the piece's place in its document. */
    private TokenBlocks blocks(PackedRows.Piece piece) {
        return new TokenBlocks(1, piece.tokens(), piece.place(), tokens);
    }

    private Kernels kernels() {
        return whole.kernels();
    }

    private RetentionShape shape() {
        return whole.shape();
    }

    private Supplier<Tensor> states() {
        return whole.states();
    }
}
