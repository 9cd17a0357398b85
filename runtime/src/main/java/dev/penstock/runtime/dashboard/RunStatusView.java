package dev.penstock.runtime.dashboard;

import dev.penstock.runtime.events.RunEvent;
import java.util.List;

/**
 * Who takes part in a run, what its data plane carried, and what it saved; sent when some of it is
 * new. Times in milliseconds since 1970.
 *
 * @param leaseMillis of each member, as of {@code leasesAt}; empty before the first were told
 * @param links as of step {@code linksStep}
 * @param checkpoints the last ones, oldest first
 */
record RunStatusView(
        List<RunEvent.Members.Member> members,
        List<Long> leaseMillis,
        long leasesAt,
        List<RunEvent.Links.Link> links,
        long linksStep,
        List<Checkpoint> checkpoints) {
    /**
     * A published checkpoint.
     *
     * @param verified {@code whole}, what is wrong with it, or empty while nobody has read it back
     */
    record Checkpoint(
            long time, long step, long bytes, long micros, String verified, long verifyMicros) {}
}
