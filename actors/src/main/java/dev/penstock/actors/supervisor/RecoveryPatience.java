package dev.penstock.actors.supervisor;

import dev.penstock.actors.fault.RecoveryPolicy;
import dev.penstock.actors.spi.RunPlan;
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
    void park(RecoveryAttempt under, List<Integer> silent, long now) {
        under.raisedNanos = now;
        if (under.parkedSinceNanos < 0) {
            under.parkedSinceNanos = now;
            under.nextParkReportNanos = now;
        }
        if (now >= under.nextParkReportNanos) {
            say(
                    under,
                    "parked for %.1f s in epoch %d: %d of %d ranks are here, which is no majority; waits for %s"
                            .formatted(
                                    (now - under.parkedSinceNanos) / 1e9,
                                    ranks.epoch(),
                                    under.prepared.size(),
                                    ranks.size(),
                                    silent.stream()
                                            .map(ranks::name)
                                            .collect(Collectors.joining(", "))),
                    now);
        }
    }

    /** Says whom the recovery waits for, once that takes long. */
    void explain(RecoveryAttempt under, long now) {
        long waiting = now - (under.restart == null ? under.raisedNanos : under.decidedNanos);
        if (waiting >= plan.timeouts().stallReport().toNanos()
                && now >= under.nextParkReportNanos) {
            say(
                    under,
                    "recovering in epoch %d: waits for %s since %.1f s"
                            .formatted(ranks.epoch(), awaited(under), waiting / 1e9),
                    now);
        }
    }

    private void say(RecoveryAttempt under, String text, long now) {
        under.nextParkReportNanos = now + plan.timeouts().stallReport().toNanos();
        out.notify(listener -> listener.onStall(text));
    }

    /** What a rank's start waits for; the time until it is back counts from when there is room. */
    NextAction onNoRoom(RecoveryAttempt under, String line, long now) {
        under.raisedNanos = now;
        under.decidedNanos = now;
        under.noRoomSinceNanos = under.noRoomSinceNanos < 0 ? now : under.noRoomSinceNanos;
        Duration patience = policy.roomPatience();
        return now - under.noRoomSinceNanos > patience.toNanos()
                ? new NextAction.Broken(
                        "%s; for recovery.room-patience = %d s the run %s"
                                .formatted(under.cause, patience.toSeconds(), line))
                : NextAction.GO_ON;
    }

    /** Why it is no use to wait any longer; a rank may renew its lease and yet hang. */
    Optional<String> exhausted(RecoveryAttempt under, long now) {
        Duration start = plan.timeouts().start();
        if (under.restart != null) {
            return now - under.decidedNanos <= start.toNanos()
                    ? Optional.empty()
                    : Optional.of(
                            "%s; the run did not come back within %d s: %s"
                                    .formatted(under.cause, start.toSeconds(), ranks.missing()));
        }
        Duration answers = plan.timeouts().stallLimit();
        Duration limit = under.askedFor.isEmpty() ? answers : answers.plus(start);
        return now - under.raisedNanos <= limit.toNanos()
                ? Optional.empty()
                : Optional.of(
                        "%s; the run waits for more than %d s for %s"
                                .formatted(under.cause, limit.toSeconds(), awaited(under)));
    }

    private String awaited(RecoveryAttempt under) {
        if (links.areDown()) {
            return "another media driver";
        }
        return ranks.rows().stream()
                .map(RankTable.Row::rank)
                .filter(rank -> !under.hasAnswered(rank))
                .map(ranks::name)
                .collect(Collectors.joining(", "));
    }
}
