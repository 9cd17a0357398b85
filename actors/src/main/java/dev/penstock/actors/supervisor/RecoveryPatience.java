package dev.penstock.actors.supervisor;

import dev.penstock.actors.dataplane.SharedMemoryFullException;
import dev.penstock.actors.fault.RecoveryPolicy;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.supervisor.RecoveryPhase.Preparing;
import dev.penstock.actors.supervisor.RecoveryPhase.Resuming;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;

/** For how long a recovery waits for whom, and what is said about it meanwhile. */
final class RecoveryPatience {
    private final RunPlan plan;
    private final RecoveryPolicy policy;
    private final RankTable ranks;
    private final Links links;
    private final Outbox out;

    RecoveryPatience(
            RunPlan plan, RecoveryPolicy policy, RankTable ranks, Links links, Outbox out) {
        this.plan = plan;
        this.policy = policy;
        this.ranks = ranks;
        this.links = links;
        this.out = out;
    }

    /** No majority is here: the run waits for these without a deadline, and says so. */
    Preparing park(Preparing under, List<Integer> silent, long now) {
        RecoveryWaits waits = under.attempt().waits().parked(now);
        Preparing parked = under.since(now).with(under.attempt().waits(waits));
        if (!waits.mayReport(now)) {
            return parked;
        }
        String text =
                "parked for %.1f s in epoch %d: %d of %d ranks are here, which is no majority; waits for %s"
                        .formatted(
                                (now - waits.parkedSinceNanos().orElse(now)) / 1e9,
                                ranks.epoch(),
                                under.prepared().size(),
                                ranks.present(),
                                silent.stream().map(ranks::name).collect(Collectors.joining(", ")));
        return parked.with(say(parked.attempt(), text, now));
    }

    /** Says whom the recovery waits for, once that takes long. */
    RecoveryPhase explain(RecoveryPhase under, long now) {
        long waiting = now - under.sinceNanos();
        if (waiting < plan.timeouts().stallReport().toNanos()
                || !under.attempt().waits().mayReport(now)) {
            return under;
        }
        String text =
                "recovering in epoch %d: has waited for %s for %.1f s"
                        .formatted(ranks.epoch(), awaited(under), waiting / 1e9);
        return under.with(say(under.attempt(), text, now));
    }

    /** Says how long nothing is tried because shared memory was full. */
    void tellPause(long nanos) {
        String text =
                "recovering in epoch %d: shared memory was full; tries again in %.0f s"
                        .formatted(ranks.epoch(), nanos / 1e9);
        out.notify(listener -> listener.onStall(text));
    }

    private RecoveryAttempt say(RecoveryAttempt attempt, String text, long now) {
        out.notify(listener -> listener.onStall(text));
        return attempt.waits(
                attempt.waits().saidUntil(now + plan.timeouts().stallReport().toNanos()));
    }

    /** Ranks cannot start yet; the time until they are back counts from when there is room. */
    RecoveryPhase onNoRoom(RecoveryPhase under, long now) {
        RecoveryAttempt attempt = under.attempt();
        return under.since(now).with(attempt.waits(attempt.waits().withoutRoom(now)));
    }

    /** Whether ranks have waited for room for so long that they go to nodes that have others. */
    boolean isOverForRoom(RecoveryPhase under, long now) {
        long since = under.attempt().waits().noRoomSinceNanos().orElse(now);
        return policy.rebalanceAfter().filter(wait -> now - since >= wait.toNanos()).isPresent();
    }

    /** What becomes of the run while its ranks' start waits for what this line says. */
    NextAction afterNoRoom(RecoveryPhase under, String line, long now) {
        RecoveryAttempt attempt = under.attempt();
        Duration patience = policy.roomPatience();
        long since = attempt.waits().noRoomSinceNanos().orElse(now);
        return now - since > patience.toNanos()
                ? new NextAction.Broken(
                        "%s; for recovery.room-patience = %d s the run %s"
                                .formatted(attempt.cause(), patience.toSeconds(), line))
                : NextAction.GO_ON;
    }

    /** Whether half the time has passed within which ranks are to answer. */
    boolean isHalfExhausted(RecoveryPhase under, long now) {
        Duration limit =
                under instanceof Preparing ? plan.timeouts().stallLimit() : plan.timeouts().start();
        return now - under.sinceNanos() > limit.toNanos() / 2;
    }

    /** Why it is no use to wait any longer; a rank may renew its lease and yet hang. */
    Optional<String> exhausted(RecoveryPhase under, long now) {
        long waiting = now - under.sinceNanos();
        Duration start = plan.timeouts().start();
        String cause = under.attempt().cause();
        return switch (under) {
            case Preparing preparing -> {
                Duration answers = plan.timeouts().stallLimit();
                Duration limit = preparing.askedFor().isEmpty() ? answers : answers.plus(start);
                yield waiting <= limit.toNanos()
                        ? Optional.empty()
                        : Optional.of(
                                "%s; the run waits for more than %d s for %s"
                                        .formatted(cause, limit.toSeconds(), awaited(under)));
            }
            case Resuming _ ->
                    waiting <= start.toNanos()
                            ? Optional.empty()
                            : Optional.of(
                                    "%s; the run did not come back within %d s: %s; timeouts.start is that limit: try more where machines are busy"
                                            .formatted(cause, start.toSeconds(), notBack(under)));
        };
    }

    /** Ranks that are not open and why; where links alone broke all are, and who waits is named. */
    private String notBack(RecoveryPhase under) {
        String missing = ranks.missing();
        return missing.isEmpty() ? awaited(under) : missing;
    }

    private String awaited(RecoveryPhase under) {
        if (links.areDown()) {
            return "another media driver";
        }
        return ranks.rows().stream()
                .map(RankTable.Row::rank)
                .filter(rank -> !under.hasAnswered(rank))
                .map(ranks::name)
                .collect(Collectors.joining(", "));
    }

    /**
     * How long a recovery waits before it tries again where shared memory was full. Whoever fills
     * it rarely makes room within seconds, and a run may have only so many recoveries: the four
     * tries that five leave after a death spread over 75 s.
     */
    static final class MemoryPause {
        private static final Duration FIRST = Duration.ofSeconds(5);
        private static final int MOST_DOUBLINGS = 3;

        private int failedTries;
        private long untilNanos;
        private boolean over;

        /** A recovery begins. */
        void begin(long now) {
            failedTries = 0;
            untilNanos = now;
        }

        /** Now, and of all that would follow. */
        void end(long now) {
            untilNanos = Math.min(untilNanos, now);
            over = true;
        }

        boolean isOn(long now) {
            return now < untilNanos;
        }

        /** The moment of the next try, which may have passed. */
        long untilNanos() {
            return untilNanos;
        }

        /**
         * Whether a failure belongs to a try whose end is known: nothing is opened in a pause, but
         * several ranks fail in one try.
         */
        boolean knows(String cause, long now) {
            return isOn(now) && SharedMemoryFullException.isReasonOf(cause);
        }

        /**
         * The recovery starts over.
         *
         * @return whether it has to wait longer than it would have had to
         */
        boolean lengthen(String cause, long now) {
            if (over || isOn(now) || !SharedMemoryFullException.isReasonOf(cause)) {
                return false;
            }
            untilNanos = now + (FIRST.toNanos() << Math.min(failedTries, MOST_DOUBLINGS));
            failedTries++;
            return true;
        }
    }
}
