package dev.penstock.runtime.model.parameters;

import dev.penstock.runtime.model.memory.StageScopes;
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

    /** The group being built; parameters that matrix products read may have a group apart. */
    private record Open(ParameterGroup factors, ParameterGroup others) {}

    private final StageScopes scopes;
    private final Precision precision;
    private final Use use;
    private final Sharding sharding;
    private final List<Parameter> allocated = new ArrayList<>();
    private final List<ParameterGroup> groups = new ArrayList<>();
    private @Nullable Open open;

    public ParameterAllocator(StageScopes scopes, Precision precision, Use use, Sharding sharding) {
        this.scopes = scopes;
        this.precision = precision;
        this.use = use;
        this.sharding = sharding;
    }

    /** An allocator of a rank that holds all parameters of its stage. */
    public ParameterAllocator(StageScopes scopes, Precision precision, Use use) {
        this(scopes, precision, use, Sharding.NONE);
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

    private <T> T group(String name, boolean lookedUp, Supplier<T> parameters) {
        boolean rounds = precision == Precision.BF16 && use != Use.MIRROR;
        boolean apart = precision == Precision.BF16 && !lookedUp;
        var others = new ParameterGroup(name, sharding, true, rounds && lookedUp);
        var factors =
                apart
                        ? new ParameterGroup("factors of " + name, sharding, !rounds, rounds)
                        : others;
        open = new Open(factors, others);
        T made = parameters.get();
        open = null;
        for (ParameterGroup group : apart ? List.of(factors, others) : List.of(others)) {
            if (group.elements() > 0) {
                group.allocate(scopes, use);
                groups.add(group);
            }
        }
        return made;
    }

    /** Takes a parameter into the group being built. */
    Parameter allocate(ParameterSpec spec) {
        if (open == null) {
            throw new IllegalStateException(spec.name() + " belongs to no group");
        }
        ParameterGroup group = spec.factor() ? open.factors() : open.others();
        Parameter parameter = group.add(spec, training());
        allocated.add(parameter);
        return parameter;
    }

    /** Allocates a second gradient for the parameter, which is alone in its group. */
    GroupGradient secondGradient(Parameter parameter) {
        return parameter.group().secondGradient(scopes);
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
