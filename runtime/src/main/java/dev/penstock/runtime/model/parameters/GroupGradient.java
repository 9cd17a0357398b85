package dev.penstock.runtime.model.parameters;

import dev.penstock.actors.collective.Collective;
import dev.penstock.actors.collective.CollectiveGroup;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.shape.Sharding;
import org.jspecify.annotations.Nullable;

/**
 * A gradient of a group: the accumulator to which backwards add, and the part of the sum over
 * replicas that this rank keeps, in place or, where gradients are sharded, in memory of its own. In
 * that case the accumulator has room only from {@link #open} to the end of the sum.
 */
public final class GroupGradient {
    private final GroupBuffer accumulator;
    private final Tensor part;
    private final Sharding sharding;
    private final long elements;
    private boolean summed;

    /**
     * @param part the elements of {@link Sharding#held}
     */
    GroupGradient(GroupBuffer accumulator, Tensor part, Sharding sharding, long elements) {
        this.accumulator = accumulator;
        this.part = part;
        this.sharding = sharding;
        this.elements = elements;
    }

    /** Returns the matrix to which a parameter's backwards add. */
    GroupView view(long offset, ParameterSpec spec) {
        return new GroupView(accumulator, offset, spec);
    }

    /** Returns the elements that the optimizer reads. */
    public Tensor part() {
        return part;
    }

    /** Returns the kind of row to which backwards add. */
    public RowPool.Kind row() {
        return new RowPool.Kind(DType.F32, elements);
    }

    /** Returns whether backwards can add. */
    boolean isOpen() {
        return accumulator.isBound();
    }

    void open(RowPool rows) {
        accumulator.bind(rows.take(row(), accumulator.name()));
    }

    void close(RowPool rows) {
        rows.giveBack(accumulator.whole());
        accumulator.unbind();
    }

    /**
     * Returns the sum of this group over the replicas.
     *
     * @param pool of a gradient that is sharded
     */
    public GradientReducer.Group reduction(Kernels kernels, @Nullable AccumulatorPool pool) {
        return new GradientReducer.Group() {
            @Override
            public Collective reduce(CollectiveGroup replicas) {
                return sharding.moments()
                        ? replicas.reduceScatter(accumulator.whole(), sharding.map(elements))
                        : replicas.allReduce(accumulator.whole());
            }

            @Override
            public void reduced() {
                if (pool != null) {
                    keepOwnPart(kernels);
                    pool.close(GroupGradient.this);
                }
            }
        };
    }

    private void keepOwnPart(Kernels kernels) {
        Sharding.Part own = sharding.part(elements);
        if (own.count() > 0) {
            Tensor sum = Stretches.of(accumulator.whole(), own.from(), own.count());
            if (summed) {
                kernels.add(sum, part);
            } else {
                kernels.copy(sum, part);
            }
        }
        summed = true;
        kernels.zero(accumulator.whole());
    }

    /** Discards what an abandoned step left here. */
    public void zero(Kernels kernels, @Nullable AccumulatorPool pool) {
        if (isOpen()) {
            kernels.zero(accumulator.whole());
            if (pool != null) {
                pool.close(this);
            }
        }
        if (part.elements() > 0) {
            kernels.zero(part);
        }
        summed = false;
    }

    /**
     * Called after the optimizer, which zeroed this rank's part: the other parts of the accumulator
     * are undefined.
     */
    public void end(Kernels kernels) {
        summed = false;
        if (sharding.moments() && !sharding.gradients()) {
            kernels.zero(accumulator.whole());
        }
    }
}
