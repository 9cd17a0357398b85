package dev.penstock.runtime.metrics;

import dev.penstock.schedules.ir.Op;

import java.util.Locale;

/** The activities on which a rank spends the time of a step. */
public enum Activity {
    /** Forwards. */
    FORWARD,
    /** Backwards. */
    BACKWARD,
    /** Copying a tensor into the data plane, and waiting for the receiver's credit. */
    SEND,
    /** Waiting for a neighbour's tensor. */
    RECEIVE,
    /**
     * Gathering parameters, summing gradients with replicas and with stages that share them, and
     * waiting for the other members.
     */
    REDUCE,
    /** Between ops, before the rank's first op and after its last one. */
    IDLE,
    /** The optimizer; after the step's ops and not part of their span. */
    UPDATE;

    /** The kind of an op of a lowered program. */
    public static Activity of(Op op) {
        return switch (op) {
            case Op.Forward _ -> FORWARD;
            case Op.Backward _, Op.BackwardInput _, Op.BackwardWeight _, Op.Overlapped _ ->
                    BACKWARD;
            case Op.Recompute _ -> FORWARD;
            case Op.SendActivation _, Op.SendGradient _ -> SEND;
            case Op.ReceiveActivation _, Op.ReceiveGradient _ -> RECEIVE;
            case Op.ActivationOp _, Op.ParameterOp _, Op.ReduceGradients _ -> REDUCE;
        };
    }

    /** Returns whether this is work of the model: the rest of the span is the bubble. */
    public boolean isCompute() {
        return switch (this) {
            case FORWARD, BACKWARD -> true;
            case SEND, RECEIVE, REDUCE, IDLE, UPDATE -> false;
        };
    }

    /** Returns the name in files and reports: {@code forward}. */
    public String label() {
        return name().toLowerCase(Locale.ROOT);
    }
}
