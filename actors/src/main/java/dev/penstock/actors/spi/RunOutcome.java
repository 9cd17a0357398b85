package dev.penstock.actors.spi;

/** How a run ended. */
public sealed interface RunOutcome {
    /** All steps were done. */
    record Completed(long step) implements RunOutcome {}

    /** Stopped on request after this step, saved if the run saves at all. */
    record Interrupted(long step) implements RunOutcome {}

    /**
     * Stopped by a failure.
     *
     * @param step last committed step
     * @param reason one message that names rank, stage and place
     */
    record Failed(long step, String reason) implements RunOutcome {}
}
