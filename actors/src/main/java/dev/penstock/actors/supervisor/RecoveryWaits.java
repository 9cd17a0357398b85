package dev.penstock.actors.supervisor;

import java.util.OptionalLong;

/**
 * For what a recovery has had to wait that no deadline of its own ends, and when it may next say
 * so.
 *
 * @param parkedSinceNanos when no majority was here for the first time
 * @param noRoomSinceNanos when ranks had to wait for room for the first time
 * @param nextReportNanos until then there is nothing new to say; empty if nothing was said yet
 */
record RecoveryWaits(
        OptionalLong parkedSinceNanos,
        OptionalLong noRoomSinceNanos,
        OptionalLong nextReportNanos) {
    static final RecoveryWaits NONE =
            new RecoveryWaits(OptionalLong.empty(), OptionalLong.empty(), OptionalLong.empty());

    /** The first time that a run parks is news at once. */
    RecoveryWaits parked(long now) {
        OptionalLong since = OptionalLong.of(now);
        return parkedSinceNanos.isPresent()
                ? this
                : new RecoveryWaits(since, noRoomSinceNanos, since);
    }

    RecoveryWaits withoutRoom(long now) {
        return noRoomSinceNanos.isPresent()
                ? this
                : new RecoveryWaits(parkedSinceNanos, OptionalLong.of(now), nextReportNanos);
    }

    RecoveryWaits saidUntil(long nanos) {
        return new RecoveryWaits(parkedSinceNanos, noRoomSinceNanos, OptionalLong.of(nanos));
    }

    boolean mayReport(long now) {
        return nextReportNanos.isEmpty() || now >= nextReportNanos.getAsLong();
    }

    /** Whether nobody knows when the run would come back. */
    boolean areOpenEnded() {
        return parkedSinceNanos.isPresent() || noRoomSinceNanos.isPresent();
    }
}
