package dev.penstock.schedules.validate;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.WorkUnit;

/** The kinds of op that exist once per unit. */
enum OpKind {
    FORWARD(0),
    BACKWARD(1),
    SEND_ACTIVATION(2),
    RECEIVE_ACTIVATION(3),
    SEND_GRADIENT(4),
    RECEIVE_GRADIENT(5);

    /** How many there are. */
    static final int COUNT = 6;

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
            case SEND_ACTIVATION -> new Op.SendActivation(unit);
            case RECEIVE_ACTIVATION -> new Op.ReceiveActivation(unit);
            case SEND_GRADIENT -> new Op.SendGradient(unit);
            case RECEIVE_GRADIENT -> new Op.ReceiveGradient(unit);
        };
    }
}
