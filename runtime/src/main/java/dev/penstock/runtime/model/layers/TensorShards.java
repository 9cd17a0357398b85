package dev.penstock.runtime.model.layers;

import static java.util.Objects.requireNonNull;

import dev.penstock.actors.collective.Collective;
import dev.penstock.actors.collective.CollectiveGroup;
import dev.penstock.actors.collective.ShardMap;
import dev.penstock.actors.collective.SoloGroup;
import dev.penstock.actors.collective.TensorMesh;
import dev.penstock.actors.spi.StageGroups;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.runtime.model.mesh.MeshProduct;
import dev.penstock.runtime.model.mesh.MeshShards;
import dev.penstock.runtime.model.shape.ShardShape;
import org.jspecify.annotations.Nullable;

/**
 * The tensor shards of a stage as one of them sees them. All of them run the same ops, and so reach
 * the same sums in the same order. Layers are written for tensors of all rows between a gather and
 * a sum, and for tensors of {@link ShardShape#ownRows} elsewhere; where every shard has all rows,
 * these are the same, and every shard gets the sum.
 */
public final class TensorShards {
    private final Kernels kernels;
    private final ShardShape shape;
    private final @Nullable Tensor room;
    private final @Nullable MeshShards mesh;
    private @Nullable CollectiveGroup group;

    /**
     * The shards of a shape; they must be connected before they compute, unless there is only one.
     *
     * @param room for the rows of all shards {@code [n, d]} of the largest unit; null where each
     *     has all rows
     * @param mesh what they do where they divide matrices by rows and columns: then nothing else is
     *     gathered or summed; null otherwise
     */
    public TensorShards(
            Kernels kernels, ShardShape shape, @Nullable Tensor room, @Nullable MeshShards mesh) {
        this.kernels = kernels;
        this.shape = shape;
        this.room = room;
        this.mesh = mesh;
        group = shape.shards() == 1 || mesh != null ? SoloGroup.GROUP : null;
    }

    /** Same without a mesh. */
    public TensorShards(Kernels kernels, ShardShape shape, @Nullable Tensor room) {
        this(kernels, shape, room, null);
    }

    /**
     * Returns who multiplies where shards are a mesh; otherwise null, and each multiplies alone.
     */
    @Nullable MeshProduct product(boolean inward) {
        return mesh == null ? null : mesh.product(inward);
    }

    /** Returns the mesh, if there is one. */
    @Nullable MeshShards mesh() {
        return mesh;
    }

    /** Sets the groups through which the shards exchange data until the next call. */
    public void connect(StageGroups groups) {
        if (mesh == null) {
            connect(groups.tensor());
        } else {
            mesh.connect(groups.mesh());
        }
    }

    /** Same as {@link #connect(StageGroups)} without a mesh. */
    public void connect(CollectiveGroup newGroup) {
        if (newGroup.size() != shape.shards() || newGroup.index() != shape.index()) {
            throw new IllegalArgumentException(
                    "expected a group for tensor shard %d of %d, got member %d of %d"
                            .formatted(
                                    shape.index(),
                                    shape.shards(),
                                    newGroup.index(),
                                    newGroup.size()));
        }
        group = newGroup;
    }

    /**
     * Returns where all rows of a tensor of own rows lie: the tensor itself, or the room, which
     * holds one such tensor at a time.
     */
    Tensor allRows(Tensor own) {
        return room == null ? own : room.rows(0, own.rows() * shape.shards());
    }

    /** Returns whether there is only one, which has all rows and computes whole sums. */
    boolean areOne() {
        return shape.shards() == 1 && mesh == null;
    }

    /** Returns own rows among all rows. */
    Tensor ownRows(Tensor all) {
        return all.rows(shape.firstOwnRow(all.rows()), shape.ownRows(all.rows()));
    }

    /** Returns the order of sums over own rows, which begin and end anywhere in a sequence. */
    TokenBlocks ownRows(TokenBlocks blocks) {
        return shape.sequence()
                ? new TokenBlocks(1, shape.ownRows(blocks.rows()), 0, blocks.grid())
                : blocks;
    }

    /** Begins to gather the rows of all shards into {@link #allRows}. */
    Collective beginGather(Tensor own) {
        if (room == null) {
            return SoloGroup.DONE;
        }
        Tensor all = allRows(own);
        kernels.copy(own, ownRows(all));
        return group().allGather(all, rows(all));
    }

    /** Gathers the rows of all shards in {@link #allRows}. */
    Tensor gather(Tensor own) {
        await(beginGather(own));
        return allRows(own);
    }

    /**
     * Begins to sum over the shards what each has for all rows; own rows become the sums, with the
     * same bits on every shard.
     */
    Collective beginSum(Tensor all) {
        return shape.sequence() ? group().reduceScatter(all, rows(all)) : beginSumOfWhole(all);
    }

    /** Begins to replace each shard's tensor by the sum over all shards, whatever its rows are. */
    Collective beginSumOfWhole(Tensor tensor) {
        return group().allReduce(tensor);
    }

    /**
     * Same as {@link #beginSum}, but waits for the sum.
     *
     * @return own rows
     */
    Tensor sum(Tensor all) {
        await(beginSum(all));
        return ownRows(all);
    }

    /**
     * Same as {@link #sum} for the contents of {@link #allRows} of {@code own}, which receives the
     * sums.
     */
    void sumInto(Tensor own) {
        Tensor sums = sum(allRows(own));
        if (room != null) {
            kernels.copy(sums, own);
        }
    }

    private ShardMap rows(Tensor all) {
        return new ShardMap(all.elements(), shape.shards(), all.elements() / shape.shards());
    }

    void await(Collective collective) {
        group().await(collective);
    }

    /**
     * Returns the elements of a row of {@link #show} that holds {@code count} elements of a shard.
     */
    public static int gatheredColumns(int count) {
        return Math.toIntExact(new ShardMap(count, 1).length());
    }

    /**
     * Sends each shard's row to all other shards, on a mesh to those in its row.
     *
     * @param rows dense {@code [shards, n]}, n from {@link #gatheredColumns}
     */
    void show(Tensor rows) {
        CollectiveGroup members = mesh == null ? group() : mesh.group(TensorMesh.ALONG);
        members.await(members.allGather(rows, new ShardMap(rows.elements(), members.size())));
    }

    private CollectiveGroup group() {
        return requireNonNull(group, "tensor shards must be connected before they compute");
    }
}
