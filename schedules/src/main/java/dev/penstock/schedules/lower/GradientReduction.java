package dev.penstock.schedules.lower;

/** When replicas of a stage sum their gradients. */
public enum GradientReduction {
    /** Never: there is one replica. Stages that share parameters still sum at the end of a step. */
    SHARED_ONLY,
    /** Once per step, right after the stage's last weight gradient: beside what still computes. */
    PER_STEP,
    /**
     * After the last weight gradient of every micro-batch, so that no full gradient outlives it
     * (ZeRO-2 and 3 without accumulation). Stages that share parameters sum with each other once,
     * with the last of these, which stands at the end.
     */
    PER_MICRO_BATCH
}
