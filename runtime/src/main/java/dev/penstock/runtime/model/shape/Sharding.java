package dev.penstock.runtime.model.shape;

import dev.penstock.actors.collective.ShardMap;
import dev.penstock.actors.spi.RankPlace;

/**
 * The part of every group of parameters that a rank holds, and the state that it applies to (ZeRO).
 * With one replica its part is the whole: it is kept apart only if it is offloaded.
 *
 * @param stage 0 to 3: nothing, moments, gradients too, parameters too
 * @param replicas number of ranks that hold the same parameters
 * @param index of this rank among them; of ranks that share micro-batches, 0: each holds all
 * @param sum how the gradients of what is trained are added up
 * @param swapped whether every rank holds the whole of everything, outside its memory: parameters
 *     are gathered and gradients accumulate as where they are divided
 * @param state the form of moments, whose blocks stay whole
 */
public record Sharding(
        int stage,
        int replicas,
        int index,
        GradientSum sum,
        boolean swapped,
        OptimizerState state) {
    public static final Sharding NONE = new Sharding(0, 1, 0);

    /** Nothing is swapped. */
    public Sharding(int stage, int replicas, int index, GradientSum sum) {
        this(stage, replicas, index, sum, false, OptimizerState.FLOAT32);
    }

    /** Gradients are added up in F32. */
    public Sharding(int stage, int replicas, int index) {
        this(stage, replicas, index, GradientSum.FLOAT32);
    }

    public static Sharding of(GptSettings settings, RankPlace place) {
        return divided(settings, place).keeping(settings.optimizer().state());
    }

    /** Returns the same of groups whose moments are kept in another form. */
    public Sharding keeping(OptimizerState other) {
        return new Sharding(stage, replicas, index, sum, swapped, other);
    }

    private static Sharding divided(GptSettings settings, RankPlace place) {
        if (settings.outer().isPresent()) { // replicas are not equal, so they divide nothing
            return new Sharding(
                    0,
                    1,
                    0,
                    settings.gradientSum(),
                    settings.zero().swap().isPresent(),
                    OptimizerState.FLOAT32);
        }
        int replicas = settings.grid().data() * settings.grid().context();
        // who of those that hold the same speaks for all changes where ranks may be absent
        int index =
                settings.wired() ? 0 : place.data() * settings.grid().context() + place.context();
        if (settings.zero().swap().isPresent()) {
            return new Sharding(
                    0, replicas, index, settings.gradientSum(), true, OptimizerState.FLOAT32);
        }
        boolean whole = replicas == 1 && settings.zero().offload().isEmpty();
        int stage = whole ? 0 : settings.zero().stage();
        return new Sharding(stage, replicas, index, settings.gradientSum());
    }

    /** Returns the same of one of so many ranks that hold equal parameters. */
    public Sharding among(int members, int member) {
        return new Sharding(stage, members, member, sum, swapped, state);
    }

    /**
     * Returns the same for parameters that are not trained: they have nothing to divide but
     * themselves.
     */
    public Sharding ofFrozen() {
        return parameters() ? keeping(OptimizerState.FLOAT32) : ofIntegers();
    }

    /**
     * Returns the same for frozen matrices of integers, which every replica holds whole: a row that
     * is cut would part from its scale.
     */
    public Sharding ofIntegers() {
        return new Sharding(0, replicas, index);
    }

    public boolean moments() {
        return stage >= 1;
    }

    public boolean gradients() {
        return stage >= 2 && replicas > 1;
    }

    public boolean parameters() {
        return swapped || stage >= 3;
    }

    /** Returns whether computations need parameters that have to be gathered first. */
    public boolean gathers() {
        return swapped || moments();
    }

    /** Returns whether this rank reports for the replicas where all of them hold the same. */
    public boolean speaks() {
        return moments() || index == 0;
    }

    public ShardMap map(long elements) {
        return new ShardMap(elements, replicas, state.unit());
    }

    /** Returns whether gradients are added up exactly. */
    public boolean exact() {
        return sum == GradientSum.FIXED_POINT;
    }

    /**
     * Returns the elements, of so many, that this rank counts in norms. Where sums are exact and
     * all replicas hold them, the first one counts them all: the parts of several would be added in
     * an order that depends on how many there are.
     */
    public Part counted(long elements) {
        if (exact() && !moments()) {
            return new Part(0, index == 0 ? elements : 0);
        }
        return part(elements);
    }

    /** Returns this rank's part of that many elements. */
    public Part part(long elements) {
        ShardMap map = map(elements);
        return new Part(map.from(index), map.to(index));
    }

    /** Returns the elements for which this rank has moments. */
    public Part held(long elements) {
        return moments() ? part(elements) : new Part(0, elements);
    }

    /**
     * A range of elements of a group.
     *
     * @param from the first element
     * @param to one past the last
     */
    public record Part(long from, long to) {
        public long count() {
            return to - from;
        }

        /**
         * Returns what this part has in common with another range, counted from that range's first
         * element.
         */
        public Part within(long first, long count) {
            long start = Math.clamp(from - first, 0, count);
            return new Part(start, Math.max(start, Math.clamp(to - first, 0, count)));
        }
    }
}
