package dev.penstock.actors.collective;

import dev.penstock.cuda.device.Tensor;

/** A group whose sums and gathers are one machinery that is told which of them to run. */
public interface SteppedGroup extends OpenGroup {
    /**
     * Begins a collective.
     *
     * @param whole the tensor of all parts
     * @param map which member owns which part
     */
    Collective begin(CollectiveKind kind, Tensor whole, ShardMap map);

    @Override
    default Collective reduceScatter(Tensor whole, ShardMap map) {
        return begin(CollectiveKind.REDUCE_SCATTER, whole, map);
    }

    @Override
    default Collective allGather(Tensor whole, ShardMap map) {
        return begin(CollectiveKind.ALL_GATHER, whole, map);
    }

    @Override
    default Collective allReduce(Tensor tensor) {
        return begin(CollectiveKind.ALL_REDUCE, tensor, new ShardMap(tensor.elements(), size()));
    }
}
