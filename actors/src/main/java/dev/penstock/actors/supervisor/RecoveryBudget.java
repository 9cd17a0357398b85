package dev.penstock.actors.supervisor;

import dev.penstock.actors.fault.RecoveryPolicy;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Optional;
import java.util.stream.Collectors;

/** How many recoveries a run may still have: what dies again and again will not be helped. */
final class RecoveryBudget {
    private final RecoveryPolicy policy;
    private final Deque<Spent> spent = new ArrayDeque<>();

    private record Spent(long nanos, String cause) {}

    RecoveryBudget(RecoveryPolicy policy) {
        this.policy = policy;
    }

    /** Takes one recovery; why not, if that is one too many. */
    Optional<String> spend(String cause, long now) {
        return policy.enabled() ? spendOnLiving(cause, now) : Optional.of(cause);
    }

    /**
     * The same for a recovery in which nothing died, which needs no leave to go on after deaths.
     */
    Optional<String> spendOnLiving(String cause, long now) {
        while (!spent.isEmpty() && now - spent.getFirst().nanos() > policy.window().toNanos()) {
            spent.removeFirst();
        }
        spent.addLast(new Spent(now, cause));
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
                                        .map(Spent::cause)
                                        .collect(Collectors.joining("; "))));
    }
}
