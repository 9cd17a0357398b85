package dev.penstock.runtime.model.parameters;

import dev.penstock.cuda.device.DType;
import dev.penstock.runtime.model.memory.StageScopes;
import dev.penstock.runtime.model.shape.FineTuning;
import dev.penstock.runtime.model.shape.HeldWeights;
import dev.penstock.runtime.model.shape.OptimizerState;
import dev.penstock.runtime.model.shape.Precision;
import dev.penstock.runtime.model.shape.Sharding;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** Allocates parameters group by group, in the order in which they are requested. */
public final class ParameterAllocator {
    /** The use for which parameters are allocated. */
    public enum Use {
        /** Forward and backward. */
        TRAIN,
        /** Updates from given gradients. */
        MIRROR,
        /** Forward alone. */
        INFER
    }

    /** The groups being built; parameters that matrix products read may have a group apart. */
    private record Pair(ParameterGroup factors, ParameterGroup others) {
        List<ParameterGroup> both() {
            return factors.equals(others) ? List.of(others) : List.of(factors, others);
        }
    }

    /**
     * What is trained and what is not are groups apart.
     *
     * @param adapters that are frozen, which keep all their bits
     */
    private record Open(Pair trained, Pair frozen, Pair adapters) {
        List<Pair> all() {
            return List.of(trained, frozen, adapters);
        }
    }

    /** The group of the token table, and of a tied head. */
    static final String TOKENS = "wte";

    /** The group of the table of positions. */
    static final String POSITIONS = "wpe";

    /** The group of the table of types. */
    static final String TYPES = "wtt";

    private final StageScopes scopes;
    private final Precision precision;
    private final Use use;
    private final Sharding sharding;
    private final FineTuning tuning;
    private final @Nullable DType narrow;
    private final List<Parameter> allocated = new ArrayList<>();
    private final List<ParameterGroup> groups = new ArrayList<>();
    private @Nullable Open open;

    public ParameterAllocator(
            StageScopes scopes,
            Precision precision,
            Use use,
            Sharding sharding,
            FineTuning tuning) {
        this(scopes, precision, use, sharding, tuning, null);
    }

    private ParameterAllocator(
            StageScopes scopes,
            Precision precision,
            Use use,
            Sharding sharding,
            FineTuning tuning,
            @Nullable DType narrow) {
        this.scopes = scopes;
        this.precision = precision;
        this.use = use;
        this.sharding = sharding;
        this.tuning = tuning;
        this.narrow = narrow;
    }

    /** An allocator of a stage that runs forwards only, of weights that are held so. */
    public static ParameterAllocator forForward(
            StageScopes scopes, Precision precision, HeldWeights held) {
        return new ParameterAllocator(
                scopes,
                precision,
                Use.INFER,
                Sharding.NONE,
                FineTuning.FULL,
                held.narrow().orElse(null));
    }

    /** An allocator of a rank that holds all parameters of its stage. */
    public ParameterAllocator(StageScopes scopes, Precision precision, Use use) {
        this(scopes, precision, use, Sharding.NONE, FineTuning.FULL);
    }

    /**
     * Puts parameters into a group, in the order in which they are allocated.
     *
     * @param parameters allocates them
     */
    <T> T group(String name, Supplier<T> parameters) {
        return group(name, false, parameters);
    }

    /**
     * Same as {@link #group} for a table whose rows are looked up, whether or not it is a factor.
     */
    <T> T tables(String name, Supplier<T> parameters) {
        return group(name, true, parameters);
    }

    /**
     * Same as {@link #group} for the head's matrix, which stays in F32 where products read that: it
     * is too large to be widened for each of its products.
     */
    <T> T head(String name, Supplier<T> parameters) {
        return group(name, !precision.copiesWeights(), parameters);
    }

    private <T> T group(String name, boolean lookedUp, Supplier<T> parameters) {
        boolean table = name.equals(TOKENS) || name.equals(POSITIONS) || name.equals(TYPES);
        Sharding trained = table ? sharding.keeping(OptimizerState.FLOAT32) : sharding;
        var building =
                new Open(
                        pair(name, lookedUp, trained, true),
                        frozen("frozen " + name, lookedUp),
                        pair("frozen adapters of " + name, lookedUp, sharding.ofFrozen(), false));
        open = building;
        T made = parameters.get();
        open = null;
        for (Pair pair : building.all()) {
            for (ParameterGroup group : pair.both()) {
                if (group.elements() > 0) {
                    group.allocate(scopes, use);
                    groups.add(group);
                }
            }
        }
        return made;
    }

    private Pair pair(String name, boolean lookedUp, Sharding shared, boolean trained) {
        DType type = narrow;
        if (type != null) {
            return new Pair(
                    ParameterGroup.narrow("factors of " + name, Sharding.NONE, type),
                    new ParameterGroup(name, shared, trained, true, null));
        }
        boolean rounds = precision.copiesWeights() && use != Use.MIRROR;
        DType copies = rounds ? precision.multiply() : null;
        boolean apart = precision.copiesWeights() && !lookedUp;
        var others = new ParameterGroup(name, shared, trained, true, lookedUp ? copies : null);
        var factors =
                apart
                        ? new ParameterGroup("factors of " + name, shared, trained, !rounds, copies)
                        : others;
        return new Pair(factors, others);
    }

    /**
     * Frozen matrices in bf16 or fp16 or in integers and in nothing else, or as those that are
     * trained.
     */
    private Pair frozen(String name, boolean lookedUp) {
        Sharding shared = sharding.ofFrozen();
        if (tuning.holdsIntegers()) {
            return new Pair(
                    ParameterGroup.narrow("factors of " + name, sharding.ofIntegers(), DType.I8),
                    new ParameterGroup(name, shared, false, true, null));
        }
        if (tuning.roundsFrozen(precision) && !lookedUp) {
            return new Pair(
                    ParameterGroup.narrow("factors of " + name, shared, tuning.rounded(precision)),
                    new ParameterGroup(name, shared, false, true, null));
        }
        return pair(name, lookedUp, shared, false);
    }

    /** Takes a parameter into the group being built. */
    Parameter allocate(ParameterSpec spec) {
        if (open == null) {
            throw new IllegalStateException(spec.name() + " belongs to no group");
        }
        Pair frozen = FineTuning.isAdapter(spec.name()) ? open.adapters() : open.frozen();
        Pair pair = tuning.trains(spec.name()) ? open.trained() : frozen;
        ParameterGroup group = spec.factor() ? pair.factors() : pair.others();
        Parameter parameter = group.add(spec, training());
        allocated.add(parameter);
        return parameter;
    }

    /** Allocates a second gradient for the parameter, which is alone in its group. */
    GroupGradient secondGradient(Parameter parameter) {
        return parameter.group().secondGradient(scopes);
    }

    /** Returns what is trained. */
    FineTuning fineTuning() {
        return tuning;
    }

    /** Returns whether tables that are looked up are held as narrow as factors. */
    boolean narrowsTables() {
        return narrow != null || tuning.holdsIntegers();
    }

    private boolean training() {
        return use != Use.INFER;
    }

    /** Returns whether backwards add to gradients. */
    boolean accumulates() {
        return use == Use.TRAIN;
    }

    /** Returns all parameters so far. */
    List<Parameter> allocated() {
        return List.copyOf(allocated);
    }

    /** Returns all groups so far. */
    List<ParameterGroup> groups() {
        return List.copyOf(groups);
    }
}
