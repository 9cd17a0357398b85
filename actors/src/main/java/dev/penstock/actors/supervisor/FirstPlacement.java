package dev.penstock.actors.supervisor;

import dev.penstock.actors.mirror.MirrorLayout;
import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.rank.RankAssignment;
import dev.penstock.actors.rank.RankCommand;
import dev.penstock.actors.rank.StateSource;
import dev.penstock.actors.spi.RunPlan;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.IntStream;

/** Which node each rank of a run that begins goes to. */
final class FirstPlacement {
    private final RunPlan plan;
    private final RankTable ranks;
    private final Placer placer;
    private final ToldLocations told;
    private final Outbox out;

    FirstPlacement(RunPlan plan, RankTable ranks, Placer placer, ToldLocations told, Outbox out) {
        this.plan = plan;
        this.ranks = ranks;
        this.placer = placer;
        this.told = told;
        this.out = out;
    }

    /** Each rank as soon as it has a node; where addresses or processes matter, all at once. */
    void place(long now) {
        Map<Integer, NodeInfo> chosen = new TreeMap<>();
        for (int rank = 0; rank < ranks.size(); rank++) {
            if (!ranks.hasNode(rank) && !ranks.isAbsent(rank)) {
                int missing = rank;
                placer.nodeFor(rank).ifPresent(node -> chosen.put(missing, node));
            }
        }
        boolean together =
                placer.addressesMatter() || plan.mirrors() || !plan.grid().isPipelineAlone();
        if (together && chosen.size() < ranks.present()) {
            return;
        }
        if (chosen.isEmpty()) {
            return;
        }
        chosen.forEach((rank, node) -> ranks.placed(rank, node, now));
        told.settle(firstMirrors());
        out.host(chosen.keySet().stream().map(this::birth).toList());
    }

    private RankAssignment birth(int rank) {
        return new RankAssignment(
                rank, new StateSource.Fresh(), told.linksAtBirth(rank, firstMirrors().fills()));
    }

    /** Says again what ranks were told that have not opened: it, or their answer, may be lost. */
    void repeat() {
        List<Integer> fills = firstMirrors().fills();
        for (int rank = 0; rank < ranks.size(); rank++) {
            if (!ranks.hasNode(rank)) {
                continue;
            }
            if (!ranks.listens(rank)) {
                out.host(List.of(birth(rank)));
            } else if (!ranks.isOpen(rank)) {
                var links = told.linksOf(rank, fills);
                out.tell(rank, new RankCommand.Resume(new StateSource.Fresh(), links));
            }
        }
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
