package dev.penstock.actors.supervisor;

import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.VitalSigns;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Extends leases on a busy machine, where a live rank may be silent because its process gets no
 * processor time, or may seem silent because the supervisor's own process gets none. A lease is
 * extended only where that is observed, and only a few times, because a starved process may hang as
 * well. A process that is stopped, or about which nothing is known, gets no extension.
 */
final class LeaseExtensions {
    private static final Logger LOG = LoggerFactory.getLogger(LeaseExtensions.class);

    /** A rank is given up after so many leases, however starved it is. */
    static final int MOST_LEASES = 4;

    /**
     * Silent processes are observed after this fraction of a lease, in which a rank should have
     * renewed it twice.
     */
    private static final int PART_UNTIL_LOOKED_AT = 3;

    /** A process counts as starved if it waited for at least this fraction of the observed time. */
    private static final int PART_STARVED = 3;

    private static final class Silence {
        private final NodeInfo node;
        private final long heardNanos;
        private final ProcessorWaits process = new ProcessorWaits();
        private final ProcessorWaits supervisor = new ProcessorWaits();
        private int leases = 1;

        private Silence(NodeInfo node, long heardNanos) {
            this.node = node;
            this.heardNanos = heardNanos;
        }
    }

    private final RunPlan plan;
    private final RankTable ranks;
    private final Outbox out;
    private final Map<Integer, Silence> silences = new HashMap<>();

    LeaseExtensions(RunPlan plan, RankTable ranks, Outbox out) {
        this.plan = plan;
        this.ranks = ranks;
        this.out = out;
    }

    /**
     * Has the processes observed whose ranks may soon be given up; to be called several times a
     * lease.
     */
    void onTick(long now) {
        Duration part = lease().dividedBy(PART_UNTIL_LOOKED_AT);
        List<Integer> silent = ranks.newlySilent(now, part);
        silences.keySet().retainAll(silent);
        Set<NodeInfo> nodes = new HashSet<>();
        for (int rank : silent) {
            NodeInfo node = ranks.node(rank).orElseThrow();
            long heard = now - ranks.silentNanos(rank, now);
            Silence known = silences.get(rank);
            if (known == null || known.heardNanos != heard) {
                silences.put(rank, new Silence(node, heard));
            }
            nodes.add(node);
        }
        if (!nodes.isEmpty()) {
            out.add(new Effect.ReadVitals(nodes));
        }
    }

    /** See {@link RunCoordinator#onVitals}. */
    void onVitals(Map<NodeInfo, VitalSigns> signs, Optional<VitalSigns> own, long now) {
        for (Silence silence : silences.values()) {
            silence.process.look(Optional.ofNullable(signs.get(silence.node)), now);
            silence.supervisor.look(own, now);
        }
    }

    /** Extends a lease that ran out, if that is allowed. Returns whether the rank still has one. */
    boolean extend(int rank, long now) {
        Silence silence = silences.get(rank);
        if (silence == null || !isAlive(silence)) {
            return false;
        }
        boolean runsOn = now - silence.heardNanos <= silence.leases * lease().toNanos();
        if (runsOn || silence.process.spanNanos() == 0) {
            return true; // in the second case it was observed once, and is being observed now
        }
        Optional<String> excuse = excuse(silence);
        if (excuse.isEmpty() || silence.leases == MOST_LEASES) {
            return false;
        }
        silence.leases++;
        LOG.warn(
                "run {}: {} has been silent for {} s, but {}: its lease of {} s is extended to {} s",
                plan.runId(),
                ranks.name(rank),
                seconds(ranks.silentNanos(rank, now)),
                excuse.get(),
                seconds(lease().toNanos()),
                seconds(silence.leases * lease().toNanos()));
        silence.process.restart();
        silence.supervisor.restart();
        return true;
    }

    private static Optional<String> excuse(Silence silence) {
        if (isStarved(silence.process)) {
            return Optional.of(
                    "its process lives and waited for a processor for " + of(silence.process));
        }
        if (isStarved(silence.supervisor)) {
            return Optional.of(
                    "its process lives, and the supervisor itself, which may not have heard it, waited for a processor for "
                            + of(silence.supervisor));
        }
        return Optional.empty();
    }

    private static boolean isStarved(ProcessorWaits waits) {
        return waits.spanNanos() > 0 && waits.waitedNanos() * PART_STARVED >= waits.spanNanos();
    }

    private static boolean isAlive(Silence silence) {
        return silence.process.state().equals(Optional.of(VitalSigns.State.ALIVE));
    }

    /** Returns what is known of the process of a rank that is given up; empty if nothing is. */
    Optional<String> remark(int rank) {
        return Optional.ofNullable(silences.get(rank)).flatMap(LeaseExtensions::remark);
    }

    private static Optional<String> remark(Silence silence) {
        return silence.process
                .state()
                .map(
                        state ->
                                switch (state) {
                                    case STOPPED -> "its process is stopped";
                                    case ENDED -> "its process has ended";
                                    case ALIVE ->
                                            silence.leases == MOST_LEASES
                                                    ? "its process lives, but its lease was extended %d times, which is the most"
                                                            .formatted(MOST_LEASES - 1)
                                                    : "its process lives, and waited for a processor for no more than "
                                                            + of(silence.process);
                                });
    }

    private static String of(ProcessorWaits waits) {
        return "%s of %s s".formatted(seconds(waits.waitedNanos()), seconds(waits.spanNanos()));
    }

    private static String seconds(long nanos) {
        return "%.1f".formatted(nanos / 1e9);
    }

    private Duration lease() {
        return plan.timeouts().lease();
    }
}
