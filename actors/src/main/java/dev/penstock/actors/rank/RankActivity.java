package dev.penstock.actors.rank;

import dev.penstock.actors.spi.StepKind;

/**
 * The activity of a rank, for leases and stall reports.
 *
 * @param pass the current pass, or the last one
 * @param position index of the op in the rank's program
 * @param sinceNanos how long it has been at this op in this state, or since a part of that was
 *     done; 0 while a link carries something to it that takes its time by plan
 * @param text what it is doing, or what it is waiting for and from which rank
 */
public record RankActivity(
        State state, StepKind kind, long pass, int position, long sinceNanos, String text) {
    /** Kinds of activity. */
    public enum State {
        /** It is between passes. */
        IDLE,
        /** It is inside an op. */
        COMPUTING,
        /** It is inside the optimizer. */
        UPDATING,
        /** It is writing its part of a checkpoint. */
        SAVING,
        /** It is waiting for a frame. */
        WAITING_FOR_FRAME,
        /** It is waiting for a free slot at the receiver. */
        WAITING_FOR_CREDIT,
        /** It is waiting for room in the log, or for the peer to connect. */
        WAITING_FOR_LINK,
        /** It is waiting for other members of its group, inside an op. */
        WAITING_FOR_MEMBERS;

        /** Returns whether the rank itself is busy: it waits for nobody. */
        public boolean isWork() {
            return switch (this) {
                case COMPUTING, UPDATING, SAVING -> true;
                case IDLE,
                        WAITING_FOR_FRAME,
                        WAITING_FOR_CREDIT,
                        WAITING_FOR_LINK,
                        WAITING_FOR_MEMBERS ->
                        false;
            };
        }
    }
}
