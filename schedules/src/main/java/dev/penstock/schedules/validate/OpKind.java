package dev.penstock.schedules.validate;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.WorkUnit;

/** The kinds of op that exist once per unit. */
enum OpKind {
    FORWARD(0),
    BACKWARD(1),
    BACKWARD_INPUT(2),
    BACKWARD_WEIGHT(3),
    RECOMPUTE(4),
    SEND_ACTIVATION(5),
    RECEIVE_ACTIVATION(6),
    SEND_GRADIENT(7),
    RECEIVE_GRADIENT(8);

    /** How many there are. */
    static final int COUNT = 9;

    private final int number;

    OpKind(int number) {
        this.number = number;
    }

    /** From 0 on, for tables. */
    int number() {
        return number;
    }

    static OpKind of(Op.UnitOp op) {
        return switch (op) {
            case Op.Forward _ -> FORWARD;
            case Op.Backward _ -> BACKWARD;
            case Op.BackwardInput _ -> BACKWARD_INPUT;
            case Op.BackwardWeight _ -> BACKWARD_WEIGHT;
            case Op.Recompute _ -> RECOMPUTE;
            case Op.SendActivation _ -> SEND_ACTIVATION;
            case Op.ReceiveActivation _ -> RECEIVE_ACTIVATION;
            case Op.SendGradient _ -> SEND_GRADIENT;
            case Op.ReceiveGradient _ -> RECEIVE_GRADIENT;
        };
    }

    Op on(WorkUnit unit) {
        return switch (this) {
            case FORWARD -> new Op.Forward(unit);
            case BACKWARD -> new Op.Backward(unit);
            case BACKWARD_INPUT -> new Op.BackwardInput(unit);
            case BACKWARD_WEIGHT -> new Op.BackwardWeight(unit);
            case RECOMPUTE -> new Op.Recompute(unit);
            case SEND_ACTIVATION -> new Op.SendActivation(unit);
            case RECEIVE_ACTIVATION -> new Op.ReceiveActivation(unit);
            case SEND_GRADIENT -> new Op.SendGradient(unit);
            case RECEIVE_GRADIENT -> new Op.ReceiveGradient(unit);
        };
    }
}
