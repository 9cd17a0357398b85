package dev.penstock.runtime.model;

import dev.penstock.actors.collective.Collective;
import dev.penstock.actors.collective.CollectiveGroup;
import dev.penstock.actors.zero.GradientReducer;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;

/**
 * A gradient of a group: where backwards add, and the part of the sum over replicas that this rank
 * keeps, in place or, where gradients are sharded, in memory of its own.
 */
final class GroupGradient {
    private final GroupBuffer accumulator;
    private final Tensor part;
    private final Sharding sharding;
    private final long elements;
    private boolean summed;

    /**
     * @param part of {@link Sharding#held}
     */
    GroupGradient(GroupBuffer accumulator, Tensor part, Sharding sharding, long elements) {
        this.accumulator = accumulator;
        this.part = part;
        this.sharding = sharding;
        this.elements = elements;
    }

    /** Where a parameter's backwards add. */
    GroupView view(long offset, ParameterSpec spec) {
        return new GroupView(accumulator, offset, spec);
    }

    /** What the optimizer reads. */
    Tensor part() {
        return part;
    }

    /** The sum of this group over the replicas. */
    GradientReducer.Group reduction(Kernels kernels) {
        return new GradientReducer.Group() {
            @Override
            public Collective reduce(CollectiveGroup replicas) {
                return sharding.moments()
                        ? replicas.reduceScatter(accumulator.whole(), sharding.map(elements))
                        : replicas.allReduce(accumulator.whole());
            }

            @Override
            public void reduced() {
                if (sharding.gradients()) {
                    keepOwnPart(kernels);
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

    /** Forgets what a step left here that was abandoned. */
    void zero(Kernels kernels) {
        kernels.zero(accumulator.whole());
        if (part.elements() > 0) {
            kernels.zero(part);
        }
        summed = false;
    }

    /** After the optimizer, which zeroed the part: others' parts in it are undefined. */
    void end(Kernels kernels) {
        summed = false;
        if (sharding.moments() && !sharding.gradients()) {
            kernels.zero(accumulator.whole());
        }
    }
}
