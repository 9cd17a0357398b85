package dev.penstock.runtime.model.stage;

import dev.penstock.actors.collective.Collective;
import dev.penstock.actors.collective.CollectiveGroup;
import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.SharedGradient;
import dev.penstock.actors.spi.TensorNorm;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.runtime.model.layers.FiniteGuard;
import dev.penstock.runtime.model.parameters.AccumulatorPool;
import dev.penstock.runtime.model.parameters.GradientReducer;
import dev.penstock.runtime.model.parameters.GroupGradient;
import dev.penstock.runtime.model.parameters.Parameter;
import dev.penstock.runtime.model.parameters.ParameterGroup;
import dev.penstock.runtime.model.parameters.RowPool;
import dev.penstock.runtime.model.parameters.StageParameters;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.Sharding;
import dev.penstock.runtime.model.shape.StageRole;
import dev.penstock.runtime.model.swap.SwappedGroup;
import java.util.BitSet;
import java.util.List;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * The gradients of a stage between its last backward and the next step. A tied matrix has a part
 * from the embedding and one from the head: two stages exchange them, a single stage adds them
 * here, each after its sum over replicas.
 */
final class StageGradients {
    private final Kernels kernels;
    private final Sharding sharding;
    private final List<Parameter> counted;
    private final List<GroupGradient> all;
    private final List<ParameterGroup> groups;
    private final List<SharedGradient> shared;
    private final @Nullable GroupGradient tiedHere;
    private final @Nullable GroupGradient headPart;
    private final @Nullable AccumulatorPool pool;
    private final @Nullable MicroBatchGradients microBatches;
    private boolean used;

    /** The loss scale that gradients carry until the optimizer; exact sums never do. */
    private float scale = 1;

    /** Whether exact sums were written as the gradients that the optimizer reads. */
    private boolean settled;

    StageGradients(
            Kernels kernels,
            StageParameters parameters,
            Sharding sharding,
            GptSettings settings,
            StageRole role,
            RankPools pools) {
        this.kernels = kernels;
        pool = pools.accumulators();
        this.sharding = sharding;
        counted = parameters.counted().stream().filter(Parameter::isTrained).toList();
        Parameter tied = settings.shape().tied() ? parameters.tokenTable() : null;
        Parameter table = tied != null && tied.isTrained() ? tied : null;
        StageParameters.Head head = parameters.head();
        boolean alone = role.first() && role.last();
        tiedHere = alone && table != null ? table.group().trained().gradient() : null;
        headPart = head == null ? null : head.second();
        shared =
                alone || table == null || !table.isHeld()
                        ? List.of()
                        : List.of(sharedBetween(settings.partition().stages(), table));
        all = parameters.gradients();
        groups = parameters.groups();
        RowPool scratches = pools.scratches();
        microBatches =
                scratches == null
                        ? null
                        : new MicroBatchGradients(
                                kernels,
                                all,
                                scratches,
                                settings.gradientAddends(),
                                settings.batch().slices());
    }

    private static SharedGradient sharedBetween(int stages, Parameter parameter) {
        return new SharedGradient(
                parameter.name(), List.of(0, stages - 1), parameter.heldGradient());
    }

    /**
     * Says which power of two all gradients of the next step are multiplied by. Exact sums hold
     * them without it, so that their range and their last bit do not depend on it.
     */
    void carry(float lossScale) {
        scale = lossScale;
        if (microBatches != null) {
            microBatches.carry(lossScale);
        }
    }

    /** Returns the gradients shared with another stage, which holds the same part of them. */
    List<SharedGradient> shared() {
        return shared;
    }

    /** Finds room for a micro-batch; to be called before a backward adds to its gradients. */
    void open(CollectiveGroup replicas, int microBatch) {
        open(replicas);
        if (microBatches != null) {
            microBatches.enter(microBatch);
        }
    }

    /**
     * A unit's gradients are complete.
     *
     * @throws dev.penstock.actors.spi.NonFiniteException if one cannot be summed exactly
     */
    void finish(int microBatch, FiniteGuard guard) {
        if (microBatches != null) {
            microBatches.finish(microBatch, guard);
        }
    }

    /**
     * Returns the micro-batches whose gradients are in the sums of this stage alone; none where
     * those are in F32.
     */
    BitSet folded() {
        return microBatches == null || settled ? new BitSet() : microBatches.folded();
    }

    /** Returns whether sums are exact, and not written yet as what the optimizer reads. */
    boolean isUnsettled() {
        return microBatches != null && !settled;
    }

    /** Finds room that is zero; to be called before a sum begins. */
    void open(CollectiveGroup replicas) {
        if (pool != null) {
            pool.open(all, replicas);
        }
        all.forEach(GroupGradient::enter);
    }

    /** Makes exact sums valid even if no micro-batch is in them. */
    void beginSums() {
        if (microBatches != null) {
            all.forEach(gradient -> gradient.beginSum(kernels));
        }
    }

    /** Writes exact sums, which are complete, as what the optimizer reads. */
    void settle() {
        if (isUnsettled()) {
            beginSums();
            all.forEach(gradient -> gradient.unfold(kernels, scale));
            settled = true;
        }
    }

    /** Begins the sum over replicas. */
    Collective reduce(CollectiveGroup replicas) {
        open(replicas);
        settled |= replicas.size() > 1; // when the sum is complete
        Collective sum =
                GradientReducer.reduce(
                        all.stream()
                                .map(gradient -> gradient.reduction(kernels, pool, scale))
                                .toList(),
                        replicas,
                        pool != null || sharding.swapped());
        if (pool != null) {
            pool.underWay(sum);
        }
        return sum;
    }

    /** Zeroes what an abandoned step left behind; to be called before a step's backwards. */
    void begin() {
        if (microBatches != null) {
            microBatches.begin();
        }
        settled = false;
        if (used) {
            all.forEach(gradient -> gradient.zero(kernels, pool));
        }
        if (pool != null) {
            pool.forgetSums();
        }
        used = true;
    }

    /** Discards what an abandoned pass left behind, except what is folded. */
    void resume() {
        if (microBatches != null) {
            microBatches.resume();
        }
    }

    /**
     * Takes note that gradients were put here from outside: the optimizer uses them, or the next
     * step zeroes them.
     */
    void given() {
        used = true;
    }

    /** Adds the head's part to the embedding's; to be called after a step's backwards. */
    void complete() {
        settle();
        if (tiedHere != null && headPart != null) {
            kernels.add(headPart.part(), tiedHere.part());
        }
    }

    /** Makes gradients durable that are swapped. */
    void seal(long step) {
        for (ParameterGroup group : groups) {
            SwappedGroup files = group.files();
            if (files != null) {
                files.sealGradient(step);
            }
        }
    }

    /** Ends the step after the optimizer, which zeroes the gradients that it used. */
    void end() {
        if (headPart != null) {
            kernels.zero(headPart.part());
        }
        all.forEach(gradient -> gradient.end(kernels));
        used = false;
    }

    /**
     * Returns the norms of this rank's own parts, whichever ranks hold the rest: the same sums
     * whatever is sharded.
     */
    List<TensorNorm> norms() {
        return norms(Parameter::own);
    }

    /** Returns the norms of one of several ranks whose gradients are equal. */
    List<TensorNorm> norms(CollectiveGroup equal) {
        return norms(p -> p.own(equal.size(), equal.index()));
    }

    private List<TensorNorm> norms(Function<Parameter, Sharding.Part> part) {
        List<Parameter> held = counted.stream().filter(p -> part.apply(p).count() > 0).toList();
        double[] norms =
                kernels.squaredNorms(held.stream().map(p -> p.gradient(part.apply(p))).toList());
        return IntStream.range(0, norms.length)
                .mapToObj(i -> new TensorNorm(held.get(i).name(), norms[i]))
                .toList();
    }

    List<NamedTensor> tensors() {
        return sharding.speaks()
                ? counted.stream()
                        .map(p -> new NamedTensor(p.name(), p.piece(), p.heldGradient()))
                        .toList()
                : List.of();
    }
}
