package dev.penstock.schedules.lower;

/** In how many ops a backward runs. */
public enum BackwardParts {
    /** As the order has it. */
    AS_WRITTEN,
    /** Every one in two, {@link SplitBackward}. */
    SPLIT,
    /** In one where both parts stand together, {@link MergeBackward}. */
    MERGED
}
