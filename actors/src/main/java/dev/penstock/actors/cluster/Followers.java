package dev.penstock.actors.cluster;

import akka.actor.typed.ActorRef;
import java.time.Duration;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;

/**
 * Who follows a run. A follower says so every few seconds; one that no longer does is forgotten.
 * Newcomers are told what still holds. Its owner's thread only.
 */
final class Followers {
    /** Longer than a few renewals. */
    private static final Duration LEASE = Duration.ofSeconds(15);

    /** News of which a newcomer is told the latest, in this order. */
    private enum Lasting {
        TOLD,
        OPENED,
        REVISED,
        EVALUATION,
        ENDED
    }

    private final Map<ActorRef<RunNews>, Long> renewedNanos = new HashMap<>();
    private final Map<Lasting, RunNews> lasting = new LinkedHashMap<>();

    /** A follower, new or renewed. */
    void follow(ActorRef<RunNews> follower) {
        if (renewedNanos.put(follower, System.nanoTime()) == null) {
            for (Lasting kind : Lasting.values()) {
                RunNews news = lasting.get(kind);
                if (news != null) {
                    follower.tell(news);
                }
            }
        }
    }

    void tell(RunNews news) {
        kind(news).ifPresent(kind -> lasting.put(kind, news));
        renewedNanos.keySet().forEach(follower -> follower.tell(news));
    }

    /** Forgets those who fell silent. */
    void sweep() {
        long now = System.nanoTime();
        renewedNanos.values().removeIf(renewed -> now - renewed > LEASE.toNanos());
    }

    private static Optional<Lasting> kind(RunNews news) {
        return switch (news) {
            case RunNews.Told _ -> Optional.of(Lasting.TOLD);
            case RunNews.Opened _ -> Optional.of(Lasting.OPENED);
            case RunNews.Revised _ -> Optional.of(Lasting.REVISED);
            case RunNews.Evaluation _ -> Optional.of(Lasting.EVALUATION);
            case RunNews.Ended _ -> Optional.of(Lasting.ENDED);
            case RunNews.Placed _,
                    RunNews.Step _,
                    RunNews.StepOfRank _,
                    RunNews.Overflowed _,
                    RunNews.Checkpoint _,
                    RunNews.CheckpointFailed _,
                    RunNews.Recovering _,
                    RunNews.Recovery _,
                    RunNews.Straggler _,
                    RunNews.PlanNote _,
                    RunNews.Members _, // told again soon
                    RunNews.Stall _ ->
                    Optional.empty();
        };
    }
}
