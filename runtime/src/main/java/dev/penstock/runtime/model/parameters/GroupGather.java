package dev.penstock.runtime.model.parameters;

import dev.penstock.actors.collective.Collective;
import dev.penstock.actors.collective.CollectiveGroup;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.shape.Sharding;
import org.jspecify.annotations.Nullable;

/**
 * Gathers all of a group from the masters of the replicas: in F32 if anything reads that, otherwise
 * the factors, which are half as many bytes in BF16 runs.
 *
 * @param pool provides the room for the whole; null if the group has its own
 */
record GroupGather(ParameterGroup group, Kernels kernels, @Nullable GatherPool pool)
        implements ParameterGatherer.Group {

    @Override
    public Collective gather(CollectiveGroup replicas) {
        if (pool != null) {
            pool.bind(group);
        }
        Tensor whole = (group.readsWeights() ? group.weights() : group.factors()).whole();
        Sharding.Part own = group.sharding().part(group.elements());
        boolean inPlace = group.readsWeights() && pool == null;
        if (own.count() > 0 && !inPlace) {
            kernels.copy(group.master(), Stretches.of(whole, own.from(), own.count()));
        }
        return replicas.allGather(whole, group.sharding().map(group.elements()));
    }

    @Override
    public void arrived() {
        if (group.readsWeights() && group.hasCopies()) {
            kernels.copy(group.weights().whole(), group.factors().whole());
        }
    }

    @Override
    public void release() {
        if (pool != null) {
            pool.free(group);
        }
    }
}
