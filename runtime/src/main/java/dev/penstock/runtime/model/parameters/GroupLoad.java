package dev.penstock.runtime.model.parameters;

import dev.penstock.actors.collective.Collective;
import dev.penstock.actors.collective.CollectiveGroup;
import dev.penstock.actors.collective.SoloGroup;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.runtime.model.swap.SwappedGroup;
import java.util.concurrent.locks.LockSupport;

/** Brings a group that is swapped into memory: no other rank has a part in that. */
final class GroupLoad implements ParameterGatherer.Group {
    private static final long POLL_NANOS = 20_000;

    private final ParameterGroup group;
    private final SwappedGroup files;
    private final Kernels kernels;
    private final GatherPool pool;
    private Collective underWay = SoloGroup.DONE;

    GroupLoad(ParameterGroup group, SwappedGroup files, Kernels kernels, GatherPool pool) {
        this.group = group;
        this.files = files;
        this.kernels = kernels;
        this.pool = pool;
    }

    @Override
    public Collective gather(CollectiveGroup replicas) {
        pool.bind(group);
        underWay = files.load(group.weights().whole());
        return underWay;
    }

    @Override
    public void arrived() {
        await();
        if (group.hasCopies()) {
            kernels.copy(group.weights().whole(), group.factors().whole());
        }
    }

    /** A group of one waits for nothing, and a pass that is given up leaves loads under way. */
    private void await() {
        while (!underWay.advance()) {
            LockSupport.parkNanos(POLL_NANOS);
        }
        underWay = SoloGroup.DONE;
    }

    @Override
    public void release() {
        await();
        pool.free(group);
    }
}
