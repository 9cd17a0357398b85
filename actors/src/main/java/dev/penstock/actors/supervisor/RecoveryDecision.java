package dev.penstock.actors.supervisor;

import dev.penstock.actors.mirror.MirrorLayout;
import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.rank.RankAssignment;
import dev.penstock.actors.rank.RankCommand;
import dev.penstock.actors.rank.RankEvent;
import dev.penstock.actors.rank.StateSource;
import dev.penstock.actors.spi.RecoveryReport.Restart;
import dev.penstock.actors.spi.RunPlan;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/**
 * From where a run goes on when all living ranks are prepared, and on which nodes the missing ones
 * come back: from what all hold in memory if nobody is missing, else from mirrors if there is one
 * of each, else from the last checkpoint.
 */
final class RecoveryDecision {
    private final RunPlan plan;
    private final RankTable ranks;
    private final Placer placer;
    private final Outbox out;
    private final StepDriver driver;
    private final Links links;

    RecoveryDecision(
            RunPlan plan,
            RankTable ranks,
            Placer placer,
            Links links,
            Outbox out,
            StepDriver driver) {
        this.plan = plan;
        this.ranks = ranks;
        this.placer = placer;
        this.links = links;
        this.out = out;
        this.driver = driver;
    }

    /**
     * Decides, unless that has to wait for room or nodes; then it is asked again when there is an
     * answer, or more of them.
     */
    void decide(RecoveryAttempt under, long now) {
        long commit = driver.lastCommit();
        List<Integer> missing = missing();
        boolean even = !under.wantsBack && under.allReach(commit);
        boolean mirrored =
                even && missing.stream().allMatch(rank -> under.holder(rank, commit).isPresent());
        under.decidedNanos = now;
        if (mirrored && !missing.isEmpty() && waitsForRoom(under, missing)) {
            return;
        }
        if (even && missing.isEmpty()) {
            under.restart = Restart.MEMORY;
            under.start = new StateSource.Kept();
        } else if (mirrored && under.hasRoom.orElseThrow()) {
            under.restart = Restart.MIRROR;
            under.start = new StateSource.Kept();
        } else if (homesMatter() && askForNodes(under, missing)) {
            return; // nobody opens links before all are somewhere
        } else {
            under.restart = Restart.CHECKPOINT;
            under.start = driver.rollBack();
            under.wentBack = true;
        }
        under.mirrors = mirrors(under);
        missing.forEach(rank -> settle(under, rank, now));
        resume(under);
        missing.forEach(rank -> hostOrAskForNode(under, rank));
    }

    /**
     * A process takes long to start, and without mirrors each dead rank without a spare one needs
     * it, whatever will be decided: it is asked for while the living still prepare.
     */
    void askAhead(RecoveryAttempt under) {
        if (!plan.mirrors() && !under.gathers() && !links.areDown()) {
            askForNodes(under, missing());
        }
    }

    private void resume(RecoveryAttempt under) {
        for (int rank : under.prepared.keySet()) {
            out.tell(
                    rank,
                    new RankCommand.Resume(
                            ranks.epoch(),
                            under.start,
                            under.mirrors,
                            ranks.homes(),
                            links.of(ranks.node(rank).orElseThrow()),
                            links.now(ranks.addresses())));
        }
    }

    private void hostOrAskForNode(RecoveryAttempt under, int rank) {
        if (ranks.hasNode(rank)) {
            host(under, rank);
        } else {
            askForNode(under, rank);
        }
    }

    /** Once in an epoch. */
    private void askForNode(RecoveryAttempt under, int rank) {
        if (!under.askedFor.get(rank)) {
            under.askedFor.set(rank);
            out.add(new Effect.StartProcess(Optional.of(rank)));
        }
    }

    private boolean homesMatter() {
        return placer.addressesMatter() || !plan.grid().isPipelineAlone();
    }

    /** Whether it is not known yet if the holders of mirrors have room for the ranks. */
    private boolean waitsForRoom(RecoveryAttempt under, List<Integer> missing) {
        Map<Integer, NodeInfo> holders = new TreeMap<>();
        missing.forEach(rank -> holders.put(rank, holderNode(under, rank).orElseThrow()));
        if (!holders.equals(under.roomAskedFor)) {
            under.roomAskedFor = holders;
            under.hasRoom = Optional.empty();
            out.add(new Effect.AskRoom(holders));
        }
        return under.hasRoom.isEmpty();
    }

    /** Whether a rank has nowhere to go yet; a process is asked for. */
    private boolean askForNodes(RecoveryAttempt under, List<Integer> missing) {
        List<Integer> homeless =
                missing.stream().filter(rank -> placer.replacementFor(rank).isEmpty()).toList();
        homeless.forEach(rank -> askForNode(under, rank));
        return !homeless.isEmpty();
    }

    private List<Integer> missing() {
        List<Integer> missing = new ArrayList<>();
        for (int rank = 0; rank < ranks.size(); rank++) {
            if (!ranks.hasNode(rank)) {
                missing.add(rank);
            }
        }
        return missing;
    }

    /**
     * Who holds whose mirror from now on, such that no death takes both; what its holder has not is
     * filled. From a checkpoint all mirrors start anew, as their ranks do.
     */
    private MirrorLayout mirrors(RecoveryAttempt under) {
        if (!plan.mirrors()) {
            return MirrorLayout.none(ranks.size());
        }
        List<Object> places = new ArrayList<>();
        for (int rank = 0; rank < ranks.size(); rank++) {
            places.add(place(under, rank));
        }
        MirrorLayout layout = MirrorLayout.across(plan, places);
        if (under.restart == Restart.CHECKPOINT) {
            return layout;
        }
        List<Integer> fills = new ArrayList<>();
        for (int rank = 0; rank < ranks.size(); rank++) {
            RankEvent.Prepared holder = under.prepared.get(layout.holderOf(rank));
            if (holder == null || !RecoveryAttempt.holds(holder, rank, driver.lastCommit())) {
                fills.add(rank);
            }
        }
        return layout.filling(fills);
    }

    /** The process of a rank; of one that has none yet, a process of its own. */
    private Object place(RecoveryAttempt under, int rank) {
        Optional<NodeInfo> node = ranks.node(rank);
        if (node.isEmpty() && under.restart == Restart.MIRROR) {
            node = holderNode(under, rank);
        }
        return node.isPresent() ? node.get().process() : rank;
    }

    private Optional<NodeInfo> holderNode(RecoveryAttempt under, int rank) {
        return under.holder(rank, driver.lastCommit()).flatMap(ranks::node);
    }

    /** Gives a missing rank a node, if there is one for it. */
    private void settle(RecoveryAttempt under, int rank, long now) {
        Optional<NodeInfo> node =
                under.restart == Restart.MIRROR
                        ? holderNode(under, rank)
                        : placer.replacementFor(rank);
        node.ifPresent(
                chosen -> {
                    under.sparesUsed += chosen.spare() ? 1 : 0;
                    ranks.placed(rank, chosen, now);
                });
    }

    /** Has a placed rank opened, from what the decision says. */
    private void host(RecoveryAttempt under, int rank) {
        StateSource start = under.start;
        if (under.restart == Restart.MIRROR) {
            int holder = under.holder(rank, driver.lastCommit()).orElseThrow();
            start = new StateSource.FromMirror(holder, driver.lastCommit());
        }
        NodeInfo node = ranks.node(rank).orElseThrow();
        var birth =
                new RankAssignment(
                        rank,
                        ranks.epoch(),
                        start,
                        under.mirrors,
                        ranks.homes(),
                        links.of(node),
                        links.now(ranks.addresses()));
        out.add(new Effect.HostRank(node, birth));
    }

    /** A node is there that was not: whom it is for is hosted. */
    void onNode(RecoveryAttempt under, long now) {
        for (int rank : missing()) {
            settle(under, rank, now);
            if (ranks.hasNode(rank)) {
                host(under, rank);
            }
        }
    }
}
