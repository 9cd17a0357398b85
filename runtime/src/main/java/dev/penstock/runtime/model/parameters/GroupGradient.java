package dev.penstock.runtime.model.parameters;

import dev.penstock.actors.collective.Collective;
import dev.penstock.actors.collective.CollectiveGroup;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.shape.Sharding;
import dev.penstock.runtime.model.swap.SwappedGroup;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * A gradient of a group: the accumulator to which backwards add, and the part of the sum over
 * replicas that this rank keeps, in place or, where gradients are sharded, in memory of its own. In
 * that case the accumulator has room only from {@link #open} to the end of the sum.
 *
 * <p>Where sums are exact, backwards add to a scratch of their micro-batch ({@link
 * #backwardsAddTo}), which is folded into the sum, and the part is written when the sum is
 * complete. A gradient that is not sharded lends its own memory for one scratch.
 *
 * <p>One that is swapped adds up in its file, from {@link #enter} to the end of the sum.
 */
public final class GroupGradient {
    private final GroupBuffer accumulator;
    private final Tensor part;
    private final Sharding sharding;
    private final long elements;
    private final @Nullable ExactSum exact;
    private final @Nullable SwappedGroup files;

    /** The room that is always there; null where gradients are sharded. */
    private final @Nullable Tensor own;

    private boolean summed;

    /** Whether the file has what this step added, and nothing of the step before. */
    private boolean entered;

    /**
     * @param part the elements of {@link Sharding#held}
     * @param exact where gradients of micro-batches are added up exactly
     * @param files where the part lies if it is swapped
     */
    GroupGradient(
            GroupBuffer accumulator,
            Tensor part,
            Sharding sharding,
            long elements,
            @Nullable ExactSum exact,
            @Nullable SwappedGroup files) {
        this.accumulator = accumulator;
        this.exact = exact;
        this.files = files;
        this.own = accumulator.isBound() ? accumulator.whole() : null;
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

    /** Returns the kind of row that a sum of micro-batches takes where gradients are sharded. */
    public RowPool.Kind row() {
        return exact == null ? scratch() : exact.row();
    }

    /** Returns the kind of row to which backwards of a micro-batch add where sums are exact. */
    public RowPool.Kind scratch() {
        return new RowPool.Kind(DType.F32, elements);
    }

    /** Returns the sum of micro-batches, and of replicas as soon as those are added. */
    Tensor sums() {
        return exact == null ? accumulator.whole() : exact.whole();
    }

    /** Returns the row that it lends as a scratch; null where gradients are sharded. */
    public @Nullable Tensor own() {
        return own;
    }

    /** Lets backwards add to another scratch, of {@link #scratch}. */
    public void backwardsAddTo(Tensor scratch) {
        accumulator.bind(scratch);
    }

    /** Lets backwards add nowhere but, if it has one, to its own row. */
    public void leaveScratch() {
        if (own == null) {
            accumulator.unbind();
        } else {
            accumulator.bind(own);
        }
    }

    /**
     * Takes a micro-batch's gradient into the exact sum and clears it.
     *
     * @return see {@link Kernels#foldGradient}
     */
    public boolean fold(Tensor scratch, float limit, Kernels kernels) {
        return exact().fold(scratch, limit, kernels);
    }

    /** Makes the exact sum valid even if nothing was folded into it. */
    public void beginSum(Kernels kernels) {
        exact().begin(kernels);
    }

    /**
     * Writes the exact sum to where the optimizer reads; no scratch lies there any more.
     *
     * @param scale power of two by which it is multiplied
     */
    public void unfold(Kernels kernels, float scale) {
        exact().unfold(part, kernels);
        scale(part, scale, kernels);
    }

    /** Multiplies by a power of two, without rounding. */
    public static void scale(Tensor row, float scale, Kernels kernels) {
        if (scale != 1 && row.elements() > 0) {
            kernels.blend(scale / 2, row, scale / 2, row);
        }
    }

    private ExactSum exact() {
        return Objects.requireNonNull(exact, "the sum is not exact");
    }

    /** To be called before anything adds to the gradient: one that is swapped begins at zero. */
    public void enter() {
        if (files != null && !entered) {
            files.clearGradient();
            entered = true;
        }
    }

    /** Returns the name of the group's gradients, for messages. */
    public String name() {
        return accumulator.name();
    }

    /** Returns whether backwards, or exact sums of them, can add. */
    boolean isOpen() {
        return exact == null ? accumulator.isBound() : exact.isOpen();
    }

    void open(RowPool rows) {
        if (exact != null) {
            exact.open(rows);
            return;
        }
        accumulator.bind(rows.take(row(), accumulator.name()));
    }

    void close(RowPool rows) {
        if (exact != null) {
            exact.close(rows);
            return;
        }
        rows.giveBack(accumulator.whole());
        accumulator.unbind();
    }

    /**
     * Returns the sum of this group over the replicas.
     *
     * @param pool of a gradient that is sharded
     * @param scale power of two by which an exact sum is multiplied in the end
     */
    public GradientReducer.Group reduction(
            Kernels kernels, @Nullable AccumulatorPool pool, float scale) {
        return new GradientReducer.Group() {
            @Override
            public Collective reduce(CollectiveGroup replicas) {
                if (exact != null) {
                    exact.begin(kernels);
                }
                return sharding.moments()
                        ? replicas.reduceScatter(sums(), sharding.map(elements))
                        : replicas.allReduce(sums());
            }

            @Override
            public void reduced() {
                if (pool != null) {
                    keepOwnPart(kernels);
                    pool.close(GroupGradient.this);
                }
                if (exact != null) {
                    unfold(kernels, scale);
                }
                if (files != null) {
                    files.gradientIsComplete();
                }
            }
        };
    }

    private void keepOwnPart(Kernels kernels) {
        if (exact != null) {
            exact.keepOwnPart(kernels);
            return;
        }
        Sharding.Part own = sharding.held(elements);
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
        if (exact != null) {
            exact.clear();
        }
        entered = false;
        summed = false;
        if (files != null) {
            return;
        }
        if (own != null) {
            kernels.zero(own);
        }
        if (isOpen()) {
            if (exact == null && own == null) {
                kernels.zero(accumulator.whole());
            }
            if (pool != null) {
                pool.close(this);
            }
        }
        if (part.elements() > 0) {
            kernels.zero(part);
        }
    }

    /**
     * Called after the optimizer, which zeroed this rank's part: the other parts of the accumulator
     * are undefined.
     */
    public void end(Kernels kernels) {
        summed = false;
        entered = false;
        if (exact != null) {
            exact.clear();
        } else if (sharding.moments() && !sharding.gradients()) {
            kernels.zero(accumulator.whole());
        }
    }
}
