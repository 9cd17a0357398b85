package dev.penstock.actors.collective;

/** What the members of a group divide. The same ranks may be two groups. */
public enum GroupRole {
    /** A stage's matrices. */
    TENSOR,
    /** A sequence's tokens. */
    CONTEXT,
    /** Nothing: they hold the same parameters. */
    REPLICAS
}
