package dev.penstock.runtime.model.swap;

import dev.penstock.actors.collective.Collective;
import dev.penstock.cuda.device.Tensor;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * A group of parameters with its optimizer state and gradient, in files. All tensors are dense rows
 * of the group's elements, F32 but for moments that are coded, which are I8.
 */
public interface SwappedGroup {
    /** Parameters and optimizer state, all of one step. */
    record State(Tensor master, Tensor m, Tensor v) {}

    /**
     * The newest whole state: another after every {@link #renew}. It is not in memory: to be read
     * and written by copies, at a disk's speed.
     */
    State state();

    /** The gradient of the step under way; the same tensor throughout, in mapped memory. */
    Tensor gradient();

    /** The step after which {@link #state} is; {@link SwapState#FIRST} before the first update. */
    long step();

    /**
     * Begins to bring the parameters into memory, beside what computes.
     *
     * @param into as many elements; belongs to the load until that is done
     */
    Collective load(Tensor into);

    /** Makes the gradient zero, in which a step begins to add. */
    void clearGradient();

    /**
     * The sum of the step's gradients is in {@link #gradient}, which may leave the memory: whoever
     * touches it brings it back.
     */
    void gradientIsComplete();

    /** The gradient of a step is what the update is to use; durable when this returns. */
    void sealGradient(long step);

    /**
     * Replaces the state by that after a step: the old one stays until the new one is whole and
     * durable.
     *
     * @param update is given a stretch at a time, from the first elements to the last
     */
    void renew(long step, Consumer<Stretch> update);

    /**
     * Some elements of an update.
     *
     * @param state a copy of them, which the update changes
     * @param first the first of them, counted in the group
     * @param gradient a copy of theirs, which the update may change
     */
    record Stretch(State state, long first, Tensor gradient) {}

    /**
     * The outer parameters of replicas that take steps alone, and their momentum; see {@link
     * dev.penstock.runtime.model.shape.OuterSettings}. Like {@link State}.
     */
    record Outer(Tensor anchor, @Nullable Tensor momentum) {}

    /** Makes room for outer state, zero, or finds what an earlier process left of it. */
    void addOuter(boolean momentum);

    /** The newest whole outer state: another after every {@link #renewOuter}. */
    Outer outer();

    /** The outer parameters begin as the parameters are. */
    void anchorHere();

    /**
     * The outer parameters become what the parameters are after a step, once: an interruption can
     * be continued.
     */
    void anchorAfter(long step);

    /** Says whether {@link #load} brings the outer parameters instead. */
    void loadOuter(boolean instead);

    /** What is done with copies of some elements, counted from the first of the group. */
    interface OuterStep {
        void take(long first, Tensor anchor, @Nullable Tensor momentum);
    }

    /** What is done with copies of some elements, likewise. */
    interface OwnStep {
        void take(long first, Tensor anchor, Tensor own);
    }

    /** Shows the outer parameters beside the own ones, a stretch at a time. */
    void compare(OwnStep reader);

    /**
     * Replaces the outer state by that with a turn, and then the parameters by what follows from
     * it. What already has the turn in it stays as it is, so that an interrupted replacement can be
     * continued.
     *
     * @param turn the step of the turn
     * @param ofOuter changes outer parameters and momentum
     * @param ofOwn changes the parameters
     */
    void renewOuter(long turn, OuterStep ofOuter, OwnStep ofOwn);
}
