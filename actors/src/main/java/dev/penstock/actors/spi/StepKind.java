package dev.penstock.actors.spi;

/** What a pass through the pipeline is for. */
public enum StepKind {
    /** Forward, backward, commit, update. */
    TRAIN,
    /** Forward only; the loss of held-out data. */
    EVALUATE
}
