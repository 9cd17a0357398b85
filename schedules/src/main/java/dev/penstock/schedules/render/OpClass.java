package dev.penstock.schedules.render;

import dev.penstock.schedules.ir.Op;

/** Kinds of op as pictures tell them apart. */
enum OpClass {
    FORWARD("forward"),
    BACKWARD("backward"),
    SEND("send"),
    RECEIVE("receive"),
    BACKWARD_INPUT("backward-input"),
    BACKWARD_WEIGHT("backward-weight"),
    OVERLAPPED("overlapped"),
    RECOMPUTE("recompute"),
    GATHER("gather"),
    RELEASE("release"),
    REDUCE("reduce");

    private final String label;

    OpClass(String label) {
        this.label = label;
    }

    static OpClass of(Op op) {
        return switch (op) {
            case Op.Forward _ -> FORWARD;
            case Op.Backward _ -> BACKWARD;
            case Op.SendActivation _, Op.SendGradient _ -> SEND;
            case Op.ReceiveActivation _, Op.ReceiveGradient _ -> RECEIVE;
            case Op.BackwardInput _ -> BACKWARD_INPUT;
            case Op.BackwardWeight _ -> BACKWARD_WEIGHT;
            case Op.Overlapped _ -> OVERLAPPED;
            case Op.Recompute _ -> RECOMPUTE;
            case Op.GatherParameters _ -> GATHER;
            case Op.ReleaseParameters _ -> RELEASE;
            case Op.ReduceGradients _ -> REDUCE;
        };
    }

    String label() {
        return label;
    }
}
