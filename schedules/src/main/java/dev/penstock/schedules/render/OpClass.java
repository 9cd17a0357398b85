package dev.penstock.schedules.render;

import dev.penstock.schedules.ir.Op;

/** Kinds of op as pictures tell them apart. */
public enum OpClass {
    FORWARD("forward", "forward"),
    BACKWARD("backward", "backward"),
    SEND("send", "send"),
    RECEIVE("receive", "receive"),
    BACKWARD_INPUT("backward-input", "backward for the input"),
    BACKWARD_WEIGHT("backward-weight", "backward for the weights"),
    OVERLAPPED("overlapped", "two computations at once"),
    RECOMPUTE("recompute", "forward once more"),
    OFFLOAD("offload", "activations to the host"),
    RELOAD("reload", "activations back"),
    GATHER("gather", "gather of parameters"),
    RELEASE("release", "release of parameters"),
    REDUCE("reduce", "reduction of gradients");

    private final String label;

    private final String words;

    OpClass(String label, String words) {
        this.label = label;
        this.words = words;
    }

    /** The kind of an op. */
    public static OpClass of(Op op) {
        return switch (op) {
            case Op.Forward _ -> FORWARD;
            case Op.Backward _ -> BACKWARD;
            case Op.SendActivation _, Op.SendGradient _ -> SEND;
            case Op.ReceiveActivation _, Op.ReceiveGradient _ -> RECEIVE;
            case Op.BackwardInput _ -> BACKWARD_INPUT;
            case Op.BackwardWeight _ -> BACKWARD_WEIGHT;
            case Op.Overlapped _ -> OVERLAPPED;
            case Op.Recompute _ -> RECOMPUTE;
            case Op.Offload _ -> OFFLOAD;
            case Op.Reload _ -> RELOAD;
            case Op.GatherParameters _ -> GATHER;
            case Op.ReleaseParameters _ -> RELEASE;
            case Op.ReduceGradients _ -> REDUCE;
        };
    }

    /** One word, also a CSS class and a category of a trace. */
    public String label() {
        return label;
    }

    /** For the reader of a legend. */
    public String words() {
        return words;
    }

    /** Whether it runs beside the computations of its rank. */
    public boolean background() {
        return switch (this) {
            case OFFLOAD, RELOAD, GATHER, RELEASE, REDUCE -> true;
            case FORWARD,
                    BACKWARD,
                    SEND,
                    RECEIVE,
                    BACKWARD_INPUT,
                    BACKWARD_WEIGHT,
                    OVERLAPPED,
                    RECOMPUTE ->
                    false;
        };
    }
}
