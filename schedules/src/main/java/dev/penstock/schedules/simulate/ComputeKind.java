package dev.penstock.schedules.simulate;

import dev.penstock.schedules.ir.Op;
import java.util.Locale;

/** The kinds of computation that a profile tells apart. */
public enum ComputeKind {
    FORWARD,
    BACKWARD,
    BACKWARD_INPUT,
    BACKWARD_WEIGHT,
    RECOMPUTE;

    /** The kind of a computation. */
    public static ComputeKind of(Op.Compute op) {
        return switch (op) {
            case Op.Forward _ -> FORWARD;
            case Op.Backward _ -> BACKWARD;
            case Op.BackwardInput _ -> BACKWARD_INPUT;
            case Op.BackwardWeight _ -> BACKWARD_WEIGHT;
            case Op.Recompute _ -> RECOMPUTE;
        };
    }

    /** Its name in a profile, such as {@code backward-input}. */
    public String text() {
        return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }
}
