package dev.penstock.schedules.validate;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.WorkUnit;

/** The kinds of op that exist once per unit. */
enum OpKind {
    FORWARD,
    BACKWARD,
    SEND_ACTIVATION,
    RECEIVE_ACTIVATION,
    SEND_GRADIENT,
    RECEIVE_GRADIENT;

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
