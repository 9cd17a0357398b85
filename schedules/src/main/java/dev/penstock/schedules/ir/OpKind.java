package dev.penstock.schedules.ir;

/** The kinds of op that exist once per unit. */
public enum OpKind {
    FORWARD,
    BACKWARD,
    BACKWARD_INPUT,
    BACKWARD_WEIGHT,
    RECOMPUTE,
    SEND_ACTIVATION,
    RECEIVE_ACTIVATION,
    SEND_GRADIENT,
    RECEIVE_GRADIENT,
    OFFLOAD,
    RELOAD;

    /** How many there are. */
    public static final int COUNT = values().length;

    public static OpKind of(Op.UnitOp op) {
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
            case Op.Offload _ -> OFFLOAD;
            case Op.Reload _ -> RELOAD;
        };
    }

    /** The op of this kind that belongs to a unit. */
    public Op on(WorkUnit unit) {
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
            case OFFLOAD -> new Op.Offload(unit);
            case RELOAD -> new Op.Reload(unit);
        };
    }
}
