package dev.penstock.schedules.lower;

/**
 * How long gathered parameters stay on a rank: from a gather to the next release. Short stays need
 * little memory and much traffic, long ones the reverse.
 */
public enum ParameterResidency {
    /** For a single op: every computation gathers anew. */
    PER_OP,
    /** For ops of one micro-batch that follow each other in the stage: its slices, its turning. */
    PER_MICRO_BATCH,
    /**
     * While the rank works on the stage and on no other. A breadth-first order then gathers every
     * stage once per pass by itself, since all micro-batches of a stage stand together
     * (Lamy-Poirier, Breadth-First Pipeline Parallelism); one that changes stages with every
     * micro-batch gathers as often.
     */
    PER_PASS,
    /** From the stage's first computation of the step to its last. */
    PER_STEP
}
