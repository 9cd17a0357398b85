package dev.penstock.runtime.model.layers;

import dev.penstock.cuda.device.AttentionShape;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.runtime.model.activations.LayerActivations;

/**
 * Attention over sequences of several documents, piece by piece, as if each document were a
 * sequence: nothing is computed across borders. A slice finds the keys of its first document's
 * earlier tokens where earlier slices left them.
 */
public record PackedAttention(
        Kernels kernels, DType multiply, AttentionShape shape, int tokens, PackedRows rows)
        implements Attention {
    @Override
    public void forward(Tensor qkv, LayerActivations a, TokenBlocks blocks) {
        for (PackedRows.Piece piece : rows.pieces(blocks)) {
            kernels.attention(
                    multiply,
                    ofDocument(qkv, piece),
                    ofUnit(a.attended(), piece),
                    ofUnit(a.logSumExp(), piece),
                    shape,
                    piece.seen(),
                    blocks(piece));
        }
    }

    @Override
    public void backward(
            Tensor qkv, LayerActivations a, Tensor dAttended, Tensor dQkv, TokenBlocks blocks) {
        for (PackedRows.Piece piece : rows.pieces(blocks)) {
            if (shape.bidirectional()) {
                kernels.wholeAttentionBackward(
                        multiply,
                        ofDocument(qkv, piece),
                        ofUnit(a.attended(), piece),
                        ofUnit(a.logSumExp(), piece),
                        ofUnit(dAttended, piece),
                        ofDocument(dQkv, piece),
                        shape,
                        piece.seen(),
                        blocks(piece));
                continue;
            }
            kernels.attentionBackward(
                    multiply,
                    ofDocument(qkv, piece),
                    ofUnit(a.attended(), piece),
                    ofUnit(a.logSumExp(), piece),
                    ofUnit(dAttended, piece),
                    ofDocument(dQkv, piece),
                    shape,
                    piece.seen(),
                    blocks(piece));
        }
    }

    /** Returns the rows of the piece's document up to the piece's end. */
    private Tensor ofDocument(Tensor ofMicroBatch, PackedRows.Piece piece) {
        int first = piece.sequence() * tokens + piece.document();
        return ofMicroBatch.rows(first, piece.seen());
    }

    private static Tensor ofUnit(Tensor tensor, PackedRows.Piece piece) {
        return tensor.rows(piece.firstRow(), piece.tokens());
    }

    private TokenBlocks blocks(PackedRows.Piece piece) {
        return new TokenBlocks(1, piece.tokens(), piece.place(), tokens);
    }
}
