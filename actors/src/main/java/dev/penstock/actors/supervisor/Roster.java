package dev.penstock.actors.supervisor;

import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.spi.RunMember;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/** Tells the listener who takes part in the run, when that changes and every now and then. */
final class Roster {
    private static final long INTERVAL_NANOS = TimeUnit.SECONDS.toNanos(2);

    private final RankTable ranks;
    private final Placer placer;
    private final Outbox out;
    private List<NodeInfo> told = List.of();
    private long toldNanos;

    Roster(RankTable ranks, Placer placer, Outbox out, long now) {
        this.ranks = ranks;
        this.placer = placer;
        this.out = out;
        this.toldNanos = now;
    }

    /** To be asked often. */
    void look(long now) {
        List<NodeInfo> nodes = new ArrayList<>();
        List<RunMember> members = new ArrayList<>();
        for (int rank = 0; rank < ranks.size(); rank++) {
            if (ranks.hasNode(rank)) {
                NodeInfo node = ranks.node(rank).orElseThrow();
                long silent = TimeUnit.NANOSECONDS.toMillis(ranks.silentNanos(rank, now));
                nodes.add(node);
                members.add(member(Optional.of(rank), node, Math.max(0, silent)));
            }
        }
        for (NodeInfo spare : placer.spares()) {
            nodes.add(spare);
            members.add(member(Optional.empty(), spare, 0));
        }
        if (!members.isEmpty() && (!nodes.equals(told) || now - toldNanos > INTERVAL_NANOS)) {
            told = nodes;
            toldNanos = now;
            List<RunMember> all = List.copyOf(members);
            out.notify(listener -> listener.onMembers(all));
        }
    }

    private static RunMember member(Optional<Integer> rank, NodeInfo node, long leaseMillis) {
        return new RunMember(rank, node.name(), node.pid(), node.version(), leaseMillis);
    }
}
