package dev.penstock.actors.fault;

import dev.penstock.actors.spi.StepKind;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.WorkUnit;
import org.jspecify.annotations.Nullable;

/**
 * Where a rank asks whether something is to go wrong. Called by the rank's own thread; a call may
 * not return.
 */
public interface RankFaults {
    /** Nothing ever goes wrong on purpose. */
    RankFaults NONE = new RankFaults() {};

    /** A pass begins; what follows belongs to this step (or held-out batch). */
    default void beginPass(StepKind kind, long step) {}

    /** An op is tried for the first time. */
    default void beforeOp(Op op) {}

    /** A computation has ended; what is done here counts as its time. */
    default void afterComputation(Op op, long startNanos) {}

    /** A unit is about to go forward, reading this (null on the first stage). */
    default void beforeForward(WorkUnit unit, @Nullable Tensor input) {}

    /** A unit has gone forward, leaving this (null on the last stage). */
    default void afterForward(WorkUnit unit, @Nullable Tensor output) {}

    /** A moment among the ops of the pass that began last. */
    default void amongOps(StepMoment moment) {}

    /** A moment of a step that is no op. */
    default void at(StepMoment moment, long step) {}
}
