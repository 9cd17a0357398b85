package dev.penstock.actors.supervisor;

import dev.penstock.actors.fault.RecoveryPolicy;
import dev.penstock.actors.journal.JournalRecord;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

/**
 * How many recoveries a run may still have: what dies again and again will not be helped. They are
 * journalled, so that a run whose supervisors die as well is no exception.
 */
final class RecoveryBudget {
    private final RecoveryPolicy policy;
    private final Outbox out;
    private final long worldClockMs;
    private final Deque<JournalRecord.Counted> spent = new ArrayDeque<>();

    /**
     * @param worldClockMs what clocks say when {@code now} is 0
     */
    RecoveryBudget(RecoveryPolicy policy, Outbox out, long worldClockMs) {
        this.policy = policy;
        this.out = out;
        this.worldClockMs = worldClockMs;
    }

    /**
     * What earlier supervisors have spent, on clocks that need not agree with this one's. Nothing
     * happened after now, or after what was written behind it: what seems to is moved back, with
     * all before it. A clock that was an hour ahead would use the budget up for an hour.
     */
    void takeUp(List<JournalRecord.Counted> earlier, long now) {
        long latest = atMs(now);
        long ahead = 0;
        for (JournalRecord.Counted one : earlier.reversed()) {
            ahead = Math.max(ahead, one.atMs() - latest);
            latest = one.atMs() - ahead;
            spent.addFirst(new JournalRecord.Counted(latest, one.cause()));
        }
    }

    private long atMs(long now) {
        return worldClockMs + TimeUnit.NANOSECONDS.toMillis(now);
    }

    /** Takes one recovery; why not, if that is one too many. */
    Optional<String> spend(String cause, long now) {
        return policy.enabled() ? spendOnLiving(cause, now) : Optional.of(cause);
    }

    /**
     * The same for a recovery in which nothing died, which needs no leave to go on after deaths.
     */
    Optional<String> spendOnLiving(String cause, long now) {
        long atMs = atMs(now);
        spent.removeIf(one -> atMs - one.atMs() > policy.window().toMillis());
        var counted = new JournalRecord.Counted(atMs, cause);
        spent.addLast(counted);
        out.add(new Effect.Journal(counted));
        if (spent.size() <= policy.maxRestarts()) {
            return Optional.empty();
        }
        return Optional.of(
                "%d recoveries within %d s are more than recovery.max-restarts = %d allows: %s"
                        .formatted(
                                spent.size(),
                                policy.window().toSeconds(),
                                policy.maxRestarts(),
                                spent.stream()
                                        .map(JournalRecord.Counted::cause)
                                        .collect(Collectors.joining("; "))));
    }
}
