package dev.penstock.schedules.ir;

/** What a schedule is for, and so what a complete one holds. */
public enum PassKind {
    /** Every unit has a forward and a backward. */
    TRAINING,
    /** Every unit has a forward only: evaluation. */
    FORWARD_ONLY
}
