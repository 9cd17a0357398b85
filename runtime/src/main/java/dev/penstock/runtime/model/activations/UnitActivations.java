package dev.penstock.runtime.model.activations;

import static java.util.Objects.requireNonNull;

import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.memory.Carver;
import dev.penstock.runtime.model.shape.ShardShape;
import dev.penstock.runtime.model.shape.StageRole;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The activations of one unit that a stage keeps. The residual stream of a stage of L blocks has L
 * + 1 places:
 *
 * <pre>
 *   place      0         1               L-1          L
 *          in ---> block 0 ---> ... ---> block L-1 ---> out
 *   owned by   the caller, or the      the unit       the caller, or the unit
 *              unit on stage 0                         on the last stage
 * </pre>
 *
 * @param layers entry i is block i of the stage; {@link RecomputedBlocks} share theirs
 * @param firstOwned the first place of the stream that the unit itself holds: 0 or 1
 * @param stream the places that the unit itself holds, each {@code [n', d]}, n' of {@link
 *     ShardShape#ownRows}
 * @param head on the last stage
 * @param outputGradient room for the gradient of place L, where that place is the caller's and
 *     backwards come in two parts {@code [n', d]}
 */
public record UnitActivations(
        List<LayerActivations> layers,
        int firstOwned,
        List<Tensor> stream,
        @Nullable HeadActivations head,
        @Nullable Tensor outputGradient) {

    public static UnitActivations carve(
            Carver carver,
            ShardShape shape,
            StageRole role,
            int rows,
            boolean split,
            RecomputedBlocks recomputed) {
        List<LayerActivations> layers = new ArrayList<>();
        for (int i = 0; i < role.layers(); i++) {
            layers.add(
                    recomputed.contains(i)
                            ? recomputed.activations(i, rows, shape.ownRows(rows))
                            : LayerActivations.carve(
                                    carver,
                                    shape.like(role.firstLayer() + i),
                                    rows,
                                    recomputed.passing(),
                                    i));
        }
        int firstOwned = role.first() ? 0 : 1;
        int lastOwned = role.last() ? role.layers() : role.layers() - 1;
        List<Tensor> stream = new ArrayList<>();
        for (int place = firstOwned; place <= lastOwned; place++) {
            stream.add(carver.matrix(shape.ownRows(rows), shape.width()));
        }
        HeadActivations head = role.last() ? HeadActivations.carve(carver, shape, rows) : null;
        Tensor outputGradient =
                split && !role.last() ? carver.matrix(shape.ownRows(rows), shape.width()) : null;
        return new UnitActivations(layers, firstOwned, stream, head, outputGradient);
    }

    /**
     * Activations for passes without a backward: all blocks share one set of activations and the
     * stream alternates between two places.
     */
    public static UnitActivations carveForwardOnly(
            Carver carver, ShardShape shape, StageRole role, int rows) {
        List<LayerActivations> shared = LayerActivations.carveShared(carver, shape, role, rows);
        Tensor even = carver.matrix(rows, shape.width());
        Tensor odd = carver.matrix(rows, shape.width());
        int firstOwned = role.first() ? 0 : 1;
        int lastOwned = role.last() ? role.layers() : role.layers() - 1;
        List<Tensor> stream = new ArrayList<>();
        for (int place = firstOwned; place <= lastOwned; place++) {
            stream.add(place % 2 == 0 ? even : odd);
        }
        return new UnitActivations(
                shared,
                firstOwned,
                stream,
                role.last() ? HeadActivations.carve(carver, shape, rows) : null,
                null);
    }

    /**
     * Returns the same memory for a unit of fewer rows, of which the given number are this shard's
     * own.
     */
    public UnitActivations first(int rows, int own) {
        return new UnitActivations(
                layers.stream().map(layer -> layer.first(rows, own)).toList(),
                firstOwned,
                stream.stream().map(place -> place.rows(0, own)).toList(),
                head == null ? null : head.first(own),
                outputGradient == null ? null : outputGradient.rows(0, own));
    }

    /**
     * Returns where the gradient of a block's output waits for {@code backwardWeight}: the stream's
     * place of that output, which no later part of the backward reads.
     */
    public Tensor keptOutputGradient(int block) {
        return stream(block + 1, outputGradient);
    }

    /**
     * Returns a place of the residual stream.
     *
     * @param boundary the caller's tensor, used where the unit does not hold the place itself
     */
    public Tensor stream(int place, @Nullable Tensor boundary) {
        int own = place - firstOwned;
        return own >= 0 && own < stream.size()
                ? stream.get(own)
                : requireNonNull(boundary, "a stage in the middle needs a boundary tensor");
    }
}
