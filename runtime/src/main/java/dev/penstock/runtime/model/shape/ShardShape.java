package dev.penstock.runtime.model.shape;

import dev.penstock.actors.collective.TensorMesh;
import dev.penstock.actors.spi.TensorPiece;
import dev.penstock.actors.spi.TensorPiece.Strip;
import dev.penstock.cuda.device.AttentionShape;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.RetentionShape;
import dev.penstock.cuda.device.TokenRange;
import java.util.ArrayList;
import java.util.List;
import java.util.function.ToIntFunction;
import org.jspecify.annotations.Nullable;

/**
 * The part of a model that one of T tensor shards holds (Megatron, arXiv 1909.08053, section 3).
 * Every shard has the whole residual stream and its part of everything in between:
 *
 * <pre>
 *   norm -> q k v of its heads -> attention -> rows of c_proj ---+--> sum over shards
 *   norm -> columns of c_fc -> activation ---> rows of c_proj ---+
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
 * On a {@link TensorMesh} it has some sequences and some columns of the stream, and some rows and
 * columns of every matrix.
 *
 * @param index of this shard, from 0
 * @param shards number of shards; divides the heads of keys
 * @param sequence whether rows are divided; the shards then divide those of every unit
 * @param kept type of activations and gradients that only products read: {@link Precision#kept}
 * @param mesh how shards lie; {@link TensorMesh#NONE} where each has all columns of the stream
 */
public record ShardShape(
        ModelShape model, int index, int shards, boolean sequence, DType kept, TensorMesh mesh) {

    /** Shards on a line. */
    public ShardShape(ModelShape model, int index, int shards, boolean sequence, DType kept) {
        this(model, index, shards, sequence, kept, TensorMesh.NONE);
    }

    /** Returns the one shard that holds all of a model, and keeps all activations in F32. */
    public static ShardShape whole(ModelShape model) {
        return new ShardShape(model, 0, 1, false, DType.F32);
    }

    /** Returns how many of a unit's rows of the residual stream this shard has. */
    public int ownRows(int rows) {
        return sequence ? rows / shards : rows;
    }

    /** Returns the first of this shard's rows. */
    public int firstOwnRow(int rows) {
        return sequence ? index * (rows / shards) : 0;
    }

    /** Returns this shard's columns of the residual stream: d, or as many parts of it. */
    public int width() {
        return model.width() / mesh.side();
    }

    /** Returns the parts of heads, hidden columns and the vocabulary. */
    public int parts() {
        return mesh.isThere() ? mesh.side() : shards;
    }

    /** Returns which of these parts this shard has. */
    public int part() {
        return mesh.isThere() ? mesh.innerPart(index) : index;
    }

    public int context() {
        return model.context();
    }

    /** Returns the number of heads of this shard. */
    public int heads() {
        return ownHeads().queries();
    }

    /** Returns the number of this shard's heads of keys. */
    public int keyHeads() {
        return ownHeads().keys();
    }

    /** Returns the columns of the queries of these heads. */
    public int headColumns() {
        return ownHeads().queryColumns();
    }

    /** Returns the columns of their keys. */
    public int keyColumns() {
        return ownHeads().keyColumns();
    }

    /** Returns the columns of their outputs, in the layers that have most. */
    public int outputColumns() {
        return widest(HeadDesign::outputColumns);
    }

    /** Returns the elements of the states of a retention of these heads; 0 without one. */
    public int stateColumns() {
        return widest(HeadDesign::stateColumns);
    }

    /**
     * Returns the part of the model whose layers are all as one of this one's. A layer's own sizes
     * are those of this; where layers are unlike, {@link #outputColumns}, {@link
     * #queryKeyValueColumns} and {@link #stateColumns} are those of the widest.
     */
    public ShardShape like(int layer) {
        ModelShape alike = model.like(layer);
        return alike.equals(model)
                ? this
                : new ShardShape(alike, index, shards, sequence, kept, mesh);
    }

    /** Returns the retention of layers that have one as kernels see it; null if none has. */
    public @Nullable RetentionShape retention() {
        HeadDesign own = ownHeads();
        RetentionDesign design = own.retention();
        if (design == null || !model.block().retains()) {
            return null;
        }
        int first = part() * own.queries();
        return new RetentionShape(
                own.size(),
                design.valueSize(),
                design.decays(model.heads()).subList(first, first + own.queries()),
                design.gated());
    }

    /** Returns the columns of their queries, keys and values side by side, of layers with most. */
    public int queryKeyValueColumns() {
        return widest(HeadDesign::columns);
    }

    private int widest(ToIntFunction<HeadDesign> columns) {
        HeadDesign own = ownHeads();
        BlockDesign block = model.block();
        int attending = columns.applyAsInt(own.attending());
        int retaining = columns.applyAsInt(own);
        return block.isMixed()
                ? Math.max(attending, retaining)
                : block.retains() ? retaining : attending;
    }

    /** Returns the attention of a layer of the model as kernels see it. */
    public AttentionShape attention(int layer) {
        HeadDesign own = ownHeads();
        int window = model.block().window(layer);
        return new AttentionShape(
                own.queries(),
                own.keys(),
                own.size(),
                window == BlockDesign.ALL ? AttentionShape.NO_WINDOW : window,
                own.scoreScale(layer),
                model.block().encoder() != null);
    }

    private HeadDesign ownHeads() {
        return model.block().heads().part(parts());
    }

    /** Returns the columns of this shard's part of what leaves the activation. */
    public int hidden() {
        return model.block().hidden() / parts();
    }

    /** Returns the columns of this shard's part of what enters the activation. */
    public int hiddenColumns() {
        return model.block().hiddenColumns() / parts();
    }

    /** Returns the token whose row is the first of this shard's tables. */
    int firstToken() {
        return firstTokenOf(part());
    }

    /**
     * Returns the number of tokens of which this shard has logits; without a mesh it has their rows
     * of the tables as well.
     */
    public int tokens() {
        return firstTokenOf(part() + 1) - firstToken();
    }

    /** Returns the range of these tokens. */
    public TokenRange range() {
        return new TokenRange(firstToken(), model.vocabulary());
    }

    private int firstTokenOf(int shard) {
        return firstOf(model.vocabulary(), shard);
    }

    private int firstOf(int all, int shard) {
        return Math.toIntExact((long) all * shard / parts());
    }

    /** Returns how many columns of the logits this shard has: of its tokens, or of its classes. */
    public int outputs() {
        return firstOf(model.outputs(), part() + 1) - firstOf(model.outputs(), part());
    }

    /** Returns the range of these columns among all. */
    public TokenRange outputRange() {
        return new TokenRange(firstOf(model.outputs(), part()), model.outputs());
    }

    /** Returns whether this shard reports its columns of vectors of the stream's width. */
    public boolean countsCommon() {
        return mesh.isThere() ? mesh.isFirst(index, mesh.copiesOfStreamVectors()) : index == 0;
    }

    /** Returns whether it reports its part of biases of heads and hidden columns. */
    public boolean countsInner() {
        return mesh.isFirst(index, mesh.copiesOfInnerVectors());
    }

    /** Returns whether it reports its part of matrices. */
    public boolean countsMatrices() {
        return mesh.isFirst(index, mesh.copiesOfMatrices());
    }

    /** Returns whether it reports the losses of its sequences. */
    public boolean countsLosses() {
        return part() == 0;
    }

    /**
     * Returns this shard's columns of each of several tensors that lie side by side, each with its
     * columns divided among the shards.
     *
     * @param widths columns of each, which are those of {@code whole} together
     */
    public TensorPiece columns(List<Integer> whole, List<Integer> widths) {
        if (parts() == 1) {
            return TensorPiece.all(whole);
        }
        int allRows = whole.size() == 1 ? 1 : whole.getFirst();
        int rows = whole.size() == 1 ? 1 : allRows / mesh.matrixRowParts();
        int firstRow = allRows == 1 ? 0 : rows * mesh.matrixRowPart(index, true);
        List<Strip> strips = new ArrayList<>();
        int first = 0;
        for (int width : widths) {
            int own = width / parts();
            strips.add(new Strip(firstRow, rows, first + part() * own, own));
            first += width;
        }
        return TensorPiece.strips(whole, strips);
    }

    /** Returns this shard's part of a vector of the stream's width, or of rows of that width. */
    public TensorPiece ofStream(List<Integer> whole) {
        if (!mesh.isThere()) {
            return TensorPiece.all(whole);
        }
        int rows = whole.size() == 1 ? 1 : whole.getFirst();
        int firstColumn = mesh.streamPart(index) * width();
        return TensorPiece.strips(whole, List.of(new Strip(0, rows, firstColumn, width())));
    }

    private TensorPiece block(int rows) {
        int own = rows / mesh.matrixRowParts();
        return TensorPiece.strips(
                List.of(rows, model.width()),
                List.of(
                        new Strip(
                                own * mesh.matrixRowPart(index, false),
                                own,
                                mesh.streamPart(index) * width(),
                                width())));
    }

    /** Returns this shard's part of the rows. */
    public TensorPiece rows(int rows, int columns) {
        if (mesh.isThere()) {
            return block(rows);
        }
        int own = rows / shards;
        return rows(rows, columns, index * own, own);
    }

    /** Returns this shard's rows of a table of tokens. */
    public TensorPiece tokenRows() {
        return mesh.isThere()
                ? block(model.vocabulary())
                : rows(model.vocabulary(), model.width(), firstToken(), tokens());
    }

    /** Returns this shard's rows of the matrix of the logits. */
    public TensorPiece outputRows() {
        return mesh.isThere()
                ? block(model.outputs())
                : rows(model.outputs(), model.width(), firstOf(model.outputs(), part()), outputs());
    }

    /** Returns this shard's part of the bias of the logits. */
    public TensorPiece outputBias() {
        return TensorPiece.strips(
                List.of(model.outputs()),
                List.of(new Strip(0, 1, firstOf(model.outputs(), part()), outputs())));
    }

    private static TensorPiece rows(int rows, int columns, int first, int count) {
        return TensorPiece.strips(
                List.of(rows, columns), List.of(new Strip(first, count, 0, columns)));
    }
}
