package dev.penstock.runtime.model.activations;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.memory.Carver;
import dev.penstock.runtime.model.shape.NormDesign;
import dev.penstock.runtime.model.shape.ShardShape;
import dev.penstock.runtime.model.shape.StageRole;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * The activations of a unit of n rows that a block keeps for its backward. Queries, keys and values
 * are kept apart, for the whole micro-batch. Heads and hidden columns are those of this shard, and
 * so are rows of the residual stream and the norms in the sequence parallel form: n' for n of
 * {@link ShardShape#ownRows}.
 *
 * <p>What only products read is of {@link ShardShape#kept}; all else is F32.
 *
 * @param norm1 input of attention {@code [n', d]}
 * @param headMoments null where heads are not normalised
 * @param attended heads' outputs side by side {@code [n, hk/T]}; of a retention before their norm
 * @param logSumExp of each row and head {@code [n, h/T]}; of a retention what its norm divides by
 * @param middle the residual stream between attention and MLP {@code [n', d]}
 * @param attendedFactor the same as products read it; of a retention normalised and gated
 * @param norm2 input of the MLP {@code [n', d]}
 * @param hidden before the activation {@code [n, f/T]}, or {@code [n, 2f/T]} of two side by side
 * @param activated after the activation {@code [n, f/T]}
 */
public record LayerActivations(
        Tensor norm1,
        RowMoments moments1,
        @Nullable HeadMoments headMoments,
        Tensor attended,
        Tensor attendedFactor,
        Tensor logSumExp,
        Tensor middle,
        Tensor norm2,
        RowMoments moments2,
        Tensor hidden,
        Tensor activated) {

    static LayerActivations carve(Carver carver, ShardShape shape, int rows) {
        return carve(carver, shape, rows, null, null, null, null);
    }

    /**
     * Same as {@link #carve(Carver, ShardShape, int)} for a block that keeps only what its backward
     * reads.
     *
     * @param block its index in the stage
     */
    static LayerActivations carve(
            Carver carver, ShardShape shape, int rows, PassingActivations passing, int block) {
        int own = shape.ownRows(rows);
        return carve(
                carver,
                shape,
                rows,
                passing.norm1(block, own),
                passing.attendedFactor(block, rows, shape.outputColumns()),
                passing.norm2(block, own),
                passing.activated(block, rows));
    }

    /**
     * Carves memory that blocks of a stage use in turns.
     *
     * @return entry i: the memory as block i of the stage uses it
     */
    static List<LayerActivations> carveShared(
            Carver carver, ShardShape shape, StageRole role, int rows) {
        List<ShardShape> kinds = kinds(shape, role);
        List<Function<Carver, LayerActivations>> cuts = new ArrayList<>();
        for (ShardShape kind : kinds) {
            cuts.add(room -> carve(room, kind, rows));
        }
        List<LayerActivations> ways = carver.alternatives(cuts);
        return IntStream.range(0, role.layers())
                .mapToObj(i -> ways.get(kinds.indexOf(shape.like(role.firstLayer() + i))))
                .toList();
    }

    private static List<ShardShape> kinds(ShardShape shape, StageRole role) {
        return IntStream.range(role.firstLayer(), role.firstLayer() + role.layers())
                .mapToObj(shape::like)
                .distinct()
                .toList();
    }

    /** Carves what is null, but for an attended factor that is no tensor of its own. */
    private static LayerActivations carve(
            Carver carver,
            ShardShape shape,
            int rows,
            @Nullable Tensor norm1,
            @Nullable Tensor attendedFactor,
            @Nullable Tensor norm2,
            @Nullable Tensor activated) {
        int d = shape.width();
        int own = shape.ownRows(rows);
        DType kept = shape.kept();
        NormDesign norm = shape.model().block().norm();
        Tensor attended = carver.matrix(rows, shape.outputColumns());
        return new LayerActivations(
                norm1 != null ? norm1 : carver.factor(kept, own, d),
                RowMoments.carve(carver, norm, own),
                HeadMoments.carve(carver, shape, rows),
                attended,
                kept == attended.type() && shape.retention() == null
                        ? attended
                        : attendedFactor != null
                                ? attendedFactor
                                : carver.factor(kept, rows, shape.outputColumns()),
                carver.matrix(rows, shape.heads()),
                carver.matrix(own, d),
                norm2 != null ? norm2 : carver.factor(kept, own, d),
                RowMoments.carve(carver, norm, own),
                carver.matrix(rows, shape.hiddenColumns()),
                activated != null ? activated : carver.factor(kept, rows, shape.hidden()));
    }

    /**
     * Returns the same memory for a unit of fewer rows, of which the given number are this shard's
     * own.
     */
    LayerActivations first(int rows, int own) {
        return new LayerActivations(
                norm1.rows(0, own),
                moments1.first(own),
                headMoments == null ? null : headMoments.first(rows),
                attended.rows(0, rows),
                attendedFactor.rows(0, rows),
                logSumExp.rows(0, rows),
                middle.rows(0, own),
                norm2.rows(0, own),
                moments2.first(own),
                hidden.rows(0, rows),
                activated.rows(0, rows));
    }
}
