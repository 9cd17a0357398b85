package dev.penstock.runtime.model;

import static java.util.Objects.requireNonNull;

import dev.penstock.actors.collective.Alone;
import dev.penstock.actors.collective.Collective;
import dev.penstock.actors.collective.CollectiveGroup;
import dev.penstock.actors.collective.ShardMap;
import dev.penstock.cuda.device.Tensor;
import org.jspecify.annotations.Nullable;

/**
 * The tensor shards of a stage as one of them sees them. All of them run the same ops, and so meet
 * at the same sums in the same order.
 */
final class TensorShards {
    private final int index;
    private final int count;
    private @Nullable CollectiveGroup group;

    /** Those of a shape; to be connected before they compute, unless there is only one. */
    TensorShards(ShardShape shape) {
        index = shape.index();
        count = shape.shards();
        group = count == 1 ? Alone.GROUP : null;
    }

    /** Says through whom they meet until the next call. */
    void connect(CollectiveGroup newGroup) {
        if (newGroup.size() != count || newGroup.index() != index) {
            throw new IllegalArgumentException(
                    "expected a group for tensor shard %d of %d, got member %d of %d"
                            .formatted(index, count, newGroup.index(), newGroup.size()));
        }
        group = newGroup;
    }

    /** Begins to replace each shard's tensor by the sum of all, to the same bits everywhere. */
    Collective beginSum(Tensor tensor) {
        return group().allReduce(tensor);
    }

    void await(Collective collective) {
        group().await(collective);
    }

    /** Replaces each shard's tensor by the sum of all. */
    void sum(Tensor tensor) {
        await(beginSum(tensor));
    }

    /** Elements of a row of {@link #gather} that holds {@code count} elements of a shard. */
    static int gatheredColumns(int count) {
        return Math.toIntExact(new ShardMap(count, 1).length());
    }

    /**
     * Shows everybody what each shard has in its row.
     *
     * @param rows dense {@code [shards, n]}, n from {@link #gatheredColumns}
     */
    void gather(Tensor rows) {
        await(group().allGather(rows, new ShardMap(rows.elements(), count)));
    }

    private CollectiveGroup group() {
        return requireNonNull(group, "tensor shards compute after they were connected");
    }
}
