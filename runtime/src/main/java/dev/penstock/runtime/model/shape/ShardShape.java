package dev.penstock.runtime.model.shape;

import dev.penstock.actors.spi.TensorPiece;
import dev.penstock.actors.spi.TensorPiece.Strip;
import dev.penstock.cuda.device.TokenRange;
import java.util.List;
import java.util.stream.IntStream;

/**
 * The part of a GPT-2 that one of T tensor shards holds (Megatron, arXiv 1909.08053, section 3).
 * Every shard has the whole residual stream and its part of everything in between:
 *
 * <pre>
 *   norm -> q k v of its heads -> attention -> rows of c_proj ---+--> sum over shards
 *   norm -> columns of c_fc -> GELU ---------> rows of c_proj ---+
 * </pre>
 *
 * It also has a run of rows of the vocabulary, one more or less where it does not divide evenly. In
 * the sequence parallel form (Korthikanti et al., arXiv 2205.05198, section 4.2.2) a shard has only
 * its own run of a unit's rows of the residual stream and of the norms' outputs:
 *
 * <pre>
 *   norm of its rows -> all rows --> as above ---> sum over shards of its rows
 * </pre>
 *
 * @param index of this shard, from 0
 * @param shards number of shards; divides the heads
 * @param sequence whether rows are divided; the shards then divide those of every unit
 */
public record ShardShape(GptShape model, int index, int shards, boolean sequence) {

    /** Returns the one shard that holds all of a model. */
    public static ShardShape whole(GptShape model) {
        return new ShardShape(model, 0, 1, false);
    }

    /** Returns how many of a unit's rows of the residual stream this shard has. */
    public int ownRows(int rows) {
        return sequence ? rows / shards : rows;
    }

    /** Returns the first of this shard's rows. */
    public int firstOwnRow(int rows) {
        return sequence ? index * (rows / shards) : 0;
    }

    /** Returns the columns of the residual stream, d. */
    public int width() {
        return model.width();
    }

    public int context() {
        return model.context();
    }

    /** Returns the number of heads of this shard. */
    public int heads() {
        return model.heads() / shards;
    }

    /**
     * Returns the columns of the queries of these heads; their keys, values and outputs have as
     * many.
     */
    public int headColumns() {
        return model.width() / shards;
    }

    /** Returns the columns of this shard's part of the hidden layer. */
    public int hidden() {
        return model.hidden() / shards;
    }

    /** Returns the token whose row is the first of this shard's tables. */
    int firstToken() {
        return firstTokenOf(index);
    }

    /** Returns the number of rows of this shard's tables of tokens. */
    public int tokens() {
        return firstTokenOf(index + 1) - firstToken();
    }

    /** Returns the range of tokens whose rows this shard has. */
    public TokenRange range() {
        return new TokenRange(firstToken(), model.vocabulary());
    }

    private int firstTokenOf(int shard) {
        return Math.toIntExact((long) model.vocabulary() * shard / shards);
    }

    /** Returns whether this shard reports what all of them hold. */
    public boolean countsCommon() {
        return index == 0;
    }

    /**
     * Returns this shard's columns of each of several tensors that lie side by side, each with its
     * columns divided among the shards.
     *
     * @param tensors how many lie in {@code whole}
     */
    public TensorPiece columns(List<Integer> whole, int tensors) {
        if (shards == 1) {
            return TensorPiece.all(whole);
        }
        int rows = whole.size() == 1 ? 1 : whole.getFirst();
        int each = whole.getLast() / tensors;
        int own = each / shards;
        return TensorPiece.strips(
                whole,
                IntStream.range(0, tensors)
                        .mapToObj(i -> new Strip(0, rows, i * each + index * own, own))
                        .toList());
    }

    /** Returns this shard's part of the rows. */
    public TensorPiece rows(int rows, int columns) {
        int own = rows / shards;
        return rows(rows, columns, index * own, own);
    }

    /** Returns this shard's rows of a table of tokens. */
    public TensorPiece tokenRows() {
        return rows(model.vocabulary(), model.width(), firstToken(), tokens());
    }

    private static TensorPiece rows(int rows, int columns, int first, int count) {
        return TensorPiece.strips(
                List.of(rows, columns), List.of(new Strip(first, count, 0, columns)));
    }
}
