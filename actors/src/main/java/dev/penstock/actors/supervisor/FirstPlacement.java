package dev.penstock.actors.supervisor;

import dev.penstock.actors.mirror.MirrorLayout;
import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.rank.EpochLinks;
import dev.penstock.actors.rank.RankAssignment;
import dev.penstock.actors.rank.StateSource;
import dev.penstock.actors.spi.RunPlan;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.IntStream;

/** Which node each rank of a run that begins goes to. */
final class FirstPlacement {
    private final RunPlan plan;
    private final RankTable ranks;
    private final Placer placer;
    private final Outbox out;

    FirstPlacement(RunPlan plan, RankTable ranks, Placer placer, Outbox out) {
        this.plan = plan;
        this.ranks = ranks;
        this.placer = placer;
        this.out = out;
    }

    /** Each rank as soon as it has a node; where addresses or processes matter, all at once. */
    void place(long now) {
        Map<Integer, NodeInfo> chosen = new TreeMap<>();
        for (int rank = 0; rank < ranks.size(); rank++) {
            if (!ranks.hasNode(rank)) {
                int missing = rank;
                placer.nodeFor(rank).ifPresent(node -> chosen.put(missing, node));
            }
        }
        boolean together =
                placer.addressesMatter() || plan.mirrors() || !plan.grid().isPipelineAlone();
        if (together && chosen.size() < ranks.size()) {
            return;
        }
        chosen.forEach((rank, node) -> ranks.placed(rank, node, now));
        var links =
                new EpochLinks(ranks.epoch(), firstMirrors(), ranks.homes(), "", ranks.addresses());
        chosen.forEach(
                (rank, node) ->
                        out.host(node, new RankAssignment(rank, new StateSource.Fresh(), links)));
    }

    /** Where there are mirrors, all ranks have a node. */
    private MirrorLayout firstMirrors() {
        return MirrorLayout.atFirst(
                plan,
                IntStream.range(0, ranks.size())
                        .mapToObj(rank -> ranks.node(rank).map(NodeInfo::process).orElse(""))
                        .toList());
    }
}
