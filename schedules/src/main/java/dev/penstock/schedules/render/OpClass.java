package dev.penstock.schedules.render;

import dev.penstock.schedules.ir.Op;

/** Kinds of op as pictures tell them apart. */
enum OpClass {
    FORWARD("forward"),
    BACKWARD("backward"),
    SEND("send"),
    RECEIVE("receive"),
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
            case Op.ReduceGradients _ -> REDUCE;
        };
    }

    String label() {
        return label;
    }
}
