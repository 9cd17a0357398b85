package dev.penstock.runtime.model.parameters;

import static java.util.Objects.requireNonNull;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.shape.Sharding;
import org.jspecify.annotations.Nullable;

/**
 * The sum of a group's gradients in 64-bit integers, see {@link
 * dev.penstock.cuda.device.FixedPoint}: of all elements while micro-batches are folded into it, and
 * then, over all replicas, of the part that this rank keeps. Where gradients are sharded, the
 * former has room only from {@link #open} to the end of a sum over replicas, of which a step may
 * have several, and the latter has memory of its own.
 */
final class ExactSum {
    private final GroupBuffer sums;
    private final @Nullable Tensor apart;
    private final Sharding sharding;
    private final long elements;

    /** Whether the sums hold anything of this step. */
    private boolean begun;

    /** Whether the part that lies apart does. */
    private boolean partBegun;

    private ExactSum(GroupBuffer sums, @Nullable Tensor apart, Sharding sharding, long elements) {
        this.sums = sums;
        this.apart = apart;
        this.sharding = sharding;
        this.elements = elements;
    }

    static ExactSum allocate(DeviceScope scope, String name, Sharding sharding, long elements) {
        var sums = new GroupBuffer("sums of " + name);
        if (sharding.gradients()) {
            long held = sharding.held(elements).count();
            Tensor apart = ParameterGroup.row(scope, "own sums of " + name, DType.I64, held);
            return new ExactSum(sums, apart, sharding, elements);
        }
        sums.bind(ParameterGroup.row(scope, sums.name(), DType.I64, elements));
        return new ExactSum(sums, null, sharding, elements);
    }

    RowPool.Kind row() {
        return new RowPool.Kind(DType.I64, elements);
    }

    /** Returns whether micro-batches can be folded into it. */
    boolean isOpen() {
        return sums.isBound();
    }

    void open(RowPool rows) {
        sums.bind(rows.take(row(), sums.name()));
        begun = false;
    }

    void close(RowPool rows) {
        rows.giveBack(sums.whole());
        sums.unbind();
    }

    /** Returns all elements as one row. */
    Tensor whole() {
        return sums.whole();
    }

    /**
     * Takes in a micro-batch's gradient and clears that.
     *
     * @return see {@link Kernels#foldGradient}
     */
    boolean fold(Tensor gradient, float limit, Kernels kernels) {
        boolean within = kernels.foldGradient(gradient, sums.whole(), limit, begun);
        begun = true;
        return within;
    }

    /** Makes the sums valid even if no micro-batch was folded into them. */
    void begin(Kernels kernels) {
        if (!begun) {
            kernels.zero(sums.whole());
            begun = true;
        }
    }

    /** Keeps this rank's part, of gradients that are sharded, after a sum over replicas. */
    void keepOwnPart(Kernels kernels) {
        Tensor own = ownPart();
        if (own.elements() > 0) {
            if (partBegun) {
                kernels.add(own, requireNonNull(apart));
            } else {
                kernels.copy(own, requireNonNull(apart));
            }
        }
        partBegun = true;
    }

    private Tensor ownPart() {
        Sharding.Part held = sharding.held(elements);
        return Stretches.of(sums.whole(), held.from(), held.count());
    }

    /**
     * Writes the sum as F32.
     *
     * @param part of {@link Sharding#held}
     */
    void unfold(Tensor part, Kernels kernels) {
        if (part.elements() > 0) {
            kernels.unfoldGradient(apart == null ? ownPart() : apart, part);
        }
    }

    /** Forgets what it holds. */
    void clear() {
        begun = false;
        partBegun = false;
    }
}
