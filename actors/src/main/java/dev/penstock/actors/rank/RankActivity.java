package dev.penstock.actors.rank;

import dev.penstock.actors.spi.StepKind;

/**
 * What a rank is at, for leases and stall reports.
 *
 * @param pass the pass under way, or the last one
 * @param position index of the op in the rank's program
 * @param sinceNanos how long it has been at this op in this state
 * @param text what it does or waits for, from whom
 */
public record RankActivity(
        State state, StepKind kind, long pass, int position, long sinceNanos, String text) {
    /** Kinds of activity. */
    public enum State {
        /** Between passes. */
        IDLE,
        /** Inside an op. */
        COMPUTING,
        /** Inside the optimizer. */
        UPDATING,
        /** Writing its part of a checkpoint. */
        SAVING,
        /** For a frame. */
        WAITING_FOR_FRAME,
        /** For a free slot at the receiver. */
        WAITING_FOR_CREDIT,
        /** For room in the log, or for the peer to connect. */
        WAITING_FOR_LINK,
        /** For others of its group, inside an op. */
        WAITING_FOR_MEMBERS
    }
}
