package dev.penstock.actors.supervisor;

import dev.penstock.actors.mirror.MirrorLayout;
import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.rank.RankAssignment;
import dev.penstock.actors.rank.RankCommand;
import dev.penstock.actors.rank.StateSource;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.supervisor.RecoveryPhase.Detour;
import dev.penstock.actors.supervisor.RecoveryPhase.HoldersRoom;
import dev.penstock.actors.supervisor.RecoveryPhase.Preparing;
import dev.penstock.actors.supervisor.RecoveryPhase.Refuges;
import dev.penstock.actors.supervisor.RecoveryPhase.Resuming;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * From where a run goes on when all living ranks are prepared, and on which nodes the missing ones
 * come back: from what all hold in memory if nobody is missing, or others can do the work of those
 * who are; else from mirrors if there is one of each, else from the last checkpoint. Those that no
 * node comes for go to nodes that have others.
 */
final class RecoveryDecision {
    /** To make and prove an order takes far less; without it, a run waits for a process. */
    private static final Duration MOST_PLANNING = Duration.ofSeconds(15);

    private final RunPlan plan;
    private final RankTable ranks;
    private final Placer placer;
    private final Outbox out;
    private final StepDriver driver;
    private final Links links;
    private final ToldLocations told;
    private final Absence absence;

    RecoveryDecision(
            RunPlan plan,
            RankTable ranks,
            Placer placer,
            Links links,
            ToldLocations told,
            Outbox out,
            StepDriver driver,
            Absence absence) {
        this.plan = plan;
        this.ranks = ranks;
        this.placer = placer;
        this.links = links;
        this.told = told;
        this.out = out;
        this.driver = driver;
        this.absence = absence;
    }

    /**
     * Decides, unless that has to wait for room or nodes; then the ranks still prepare, and it is
     * asked again when there is an answer, or more of them.
     */
    RecoveryPhase decide(Preparing under, long now) {
        long commit = driver.lastCommit();
        boolean even = !under.attempt().wantsBack() && under.allReach(commit);
        Preparing known = even ? planWithoutLost(under, now) : under;
        if (even && isPlanning(known, now)) {
            return known;
        }
        if (even && known.detour() instanceof Detour.Found(_, Optional<RunPlan> made)) {
            made.filter(ranks::canTakeOver).ifPresent(this::goOnWithoutLost);
        }
        List<Integer> missing = missing();
        if (even && missing.isEmpty()) {
            driver.leaveOut(commit + 1, known.foldedEverywhere(ranks.plan(), commit + 1));
            return goOn(known, new RestartSource.Memory(), now);
        }
        Optional<StateSource> saved = driver.savedState();
        if (even && joiners(known).equals(missing) && saved.isPresent()) {
            return goOn(known, new RestartSource.Joined(saved.get()), now);
        }
        Optional<Map<Integer, Integer>> holders =
                even ? known.holders(plan, missing, commit) : Optional.empty();
        if (holders.isPresent()) {
            Map<Integer, NodeInfo> nodes = nodes(holders.get());
            if (!known.room().isAbout(nodes)) {
                out.add(new Effect.AskRoom(nodes));
                return known.with(new HoldersRoom.Asked(nodes));
            }
            switch (known.room()) {
                case HoldersRoom.Unasked _, HoldersRoom.Asked _ -> {
                    return known;
                }
                case HoldersRoom.Answered(_, boolean granted) -> {
                    if (granted) {
                        return goOn(known, new RestartSource.Mirrors(commit, holders.get()), now);
                    }
                }
            }
        }
        boolean crowds = known.attempt().crowds();
        List<Integer> homeless = crowds || homesMatter() ? homeless(missing) : List.of();
        if (homeless.isEmpty()) {
            return goBack(known, Map.of(), now);
        }
        return crowds
                ? goBesideOthers(known, homeless, now)
                : askForProcesses(known, homeless); // nobody opens links before all are somewhere
    }

    private Resuming goBack(Preparing under, Map<Integer, NodeInfo> refuges, long now) {
        return goOn(under, new RestartSource.Checkpoint(driver.rollBack(), refuges), now);
    }

    /**
     * A process takes long to start, and without mirrors each dead rank without a spare one needs
     * it, whatever will be decided: it is asked for while the living still prepare. So is a plan
     * without the dead.
     */
    Preparing askAhead(Preparing begun, long now) {
        Preparing under = planWithoutLost(begun, now);
        return under.detour() instanceof Detour.Sought
                        || plan.mirrors()
                        || under.attempt().crowds()
                        || under.attempt().takesUp()
                        || links.areDown()
                ? under
                : askForProcesses(under, homeless(missing()));
    }

    // ---- without the lost -----------------------------------------------------------------------

    /** Has a plan made without the ranks that are lost, if others may do their work. */
    private Preparing planWithoutLost(Preparing under, long now) {
        Set<Integer> absent = new TreeSet<>(missing());
        absent.removeAll(joiners(under));
        boolean helps = !absent.isEmpty() && absence.isAllowed() && under.attempt().hasLosses();
        absent.addAll(ranks.plan().absent());
        if (!helps || anyLosesAllReplicas(absent)) {
            return under.with(new Detour.Unsought());
        }
        if (under.detour().isAbout(absent)) {
            return under;
        }
        out.add(new Effect.AskPlan(ranks.revision(), absent));
        return under.with(new Detour.Sought(absent, now));
    }

    private boolean anyLosesAllReplicas(Set<Integer> absent) {
        return absent.stream().anyMatch(rank -> absent.containsAll(plan.grid().replicaGroup(rank)));
    }

    private void goOnWithoutLost(RunPlan without) {
        driver.follow(without);
        out.notify(listener -> listener.onPlanNote(without.revision().reason()));
        absence.await();
    }

    private static boolean isPlanning(Preparing under, long now) {
        return under.detour() instanceof Detour.Sought(var _, long since)
                && now - since < MOST_PLANNING.toNanos();
    }

    /** Missing ranks that were not lost: the plan has just begun to count on them. */
    private List<Integer> joiners(Preparing under) {
        return driver.savedState().isPresent()
                ? missing().stream()
                        .filter(under.attempt()::joins)
                        .filter(rank -> placer.replacementFor(rank).isPresent())
                        .toList()
                : List.of();
    }

    // ---- beside others --------------------------------------------------------------------------

    /**
     * All go back, those that no node comes for to nodes that have others; unless there is no room
     * on any of these.
     */
    private RecoveryPhase goBesideOthers(Preparing known, List<Integer> homeless, long now) {
        Refuges refuges = known.refuges();
        if (!refuges.asked().isEmpty()) {
            return known;
        }
        if (!refuges.found().values().stream().allMatch(placer::hasRanks)) {
            return goBesideOthers(known.with(Refuges.NONE), homeless, now); // excluded meanwhile
        }
        Optional<Integer> next =
                homeless.stream().filter(rank -> !refuges.found().containsKey(rank)).findFirst();
        if (next.isEmpty()) {
            return goBack(known, refuges.found(), now);
        }
        int rank = next.get();
        Optional<NodeInfo> node = placer.nodeOfOthers(rank, refuges);
        if (node.isEmpty()) {
            return askForProcesses(known, homeless);
        }
        Refuges asking = refuges.asking(rank, node.get());
        out.add(new Effect.AskRoom(asking.asked()));
        return known.with(asking);
    }

    // ---- how it goes on -------------------------------------------------------------------------

    private Resuming goOn(Preparing under, RestartSource source, long now) {
        List<Integer> missing = missing();
        MirrorLayout mirrors = mirrors(under, source);
        int spares = 0;
        for (int rank : missing) {
            spares += settle(source, rank, now) ? 1 : 0;
        }
        told.settle(mirrors);
        List<Integer> fills = mirrors.fills();
        under.prepared().ranks().forEach(rank -> resume(rank, source.ofLiving(), fills));
        host(source, fills, missing.stream().filter(ranks::hasNode).toList());
        missing.stream()
                .filter(rank -> !ranks.hasNode(rank))
                .forEach(rank -> askForProcess(under, rank));
        RecoveryAttempt attempt = under.attempt().tookSpares(spares);
        boolean back = source instanceof RestartSource.Checkpoint;
        return under.resume(back ? attempt.goneBack() : attempt, source, fills, now);
    }

    private void resume(int rank, StateSource start, List<Integer> fills) {
        out.tell(rank, new RankCommand.Resume(start, told.linksOf(rank, fills)));
    }

    /** Says again what ranks were told that are not back: it, or their answer, may be lost. */
    void repeat(Resuming under) {
        for (int rank = 0; rank < ranks.size(); rank++) {
            boolean isBack = under.back().contains(rank) && ranks.listens(rank);
            if (isBack || !ranks.hasNode(rank)) {
                continue;
            }
            if (!ranks.isBornNow(rank)) {
                resume(rank, under.source().ofLiving(), under.fills());
            } else if (ranks.listens(rank)) {
                resume(rank, under.source().ofMissing(rank), under.fills());
            } else {
                host(under.source(), under.fills(), List.of(rank));
            }
        }
    }

    private Preparing askForProcesses(Preparing under, List<Integer> homeless) {
        Preparing asked = under;
        for (int rank : homeless) {
            asked = askForProcess(asked, rank);
        }
        return asked;
    }

    /** Once in an epoch. */
    private Preparing askForProcess(Preparing under, int rank) {
        if (under.askedFor().contains(rank)) {
            return under;
        }
        out.add(new Effect.StartProcess(Optional.of(rank)));
        return under.asksProcessFor(rank);
    }

    /** While nobody is there, nobody knows whether addresses will matter. */
    private boolean homesMatter() {
        return placer.isEmpty() || placer.addressesMatter() || !plan.grid().isPipelineAlone();
    }

    /** Those that have nowhere to go yet. */
    private List<Integer> homeless(List<Integer> missing) {
        return missing.stream().filter(rank -> placer.replacementFor(rank).isEmpty()).toList();
    }

    private List<Integer> missing() {
        List<Integer> missing = new ArrayList<>();
        for (int rank = 0; rank < ranks.size(); rank++) {
            if (!ranks.hasNode(rank) && !ranks.isAbsent(rank)) {
                missing.add(rank);
            }
        }
        return missing;
    }

    /** Where missing ranks would go to their mirrors. */
    private Map<Integer, NodeInfo> nodes(Map<Integer, Integer> holders) {
        Map<Integer, NodeInfo> nodes = new TreeMap<>();
        holders.forEach((rank, holder) -> nodes.put(rank, ranks.node(holder).orElseThrow()));
        return nodes;
    }

    /**
     * Who holds whose mirror from now on, such that no death takes both; what its holder has not is
     * filled. From a checkpoint all mirrors start anew, as their ranks do.
     */
    private MirrorLayout mirrors(Preparing under, RestartSource source) {
        if (!plan.mirrors()) {
            return MirrorLayout.none(ranks.size());
        }
        List<Object> places = new ArrayList<>();
        for (int rank = 0; rank < ranks.size(); rank++) {
            places.add(place(source, rank));
        }
        MirrorLayout layout = MirrorLayout.across(plan, places);
        if (source instanceof RestartSource.Checkpoint) {
            return layout;
        }
        List<Integer> fills = new ArrayList<>();
        for (int rank = 0; rank < ranks.size(); rank++) {
            if (!under.holds(plan, layout.holderOf(rank), rank, driver.lastCommit())) {
                fills.add(rank);
            }
        }
        return layout.filling(fills);
    }

    /** The process of a rank; of one that has none yet, a process of its own. */
    private Object place(RestartSource source, int rank) {
        Optional<NodeInfo> node = ranks.node(rank).or(() -> refuge(source, rank));
        return node.isPresent() ? node.get().process() : rank;
    }

    /** The node of others that a missing rank goes to: where its mirror is, or where room is. */
    private Optional<NodeInfo> refuge(RestartSource source, int rank) {
        return switch (source) {
            case RestartSource.Mirrors(_, var holders) ->
                    Optional.ofNullable(holders.get(rank)).flatMap(ranks::node);
            case RestartSource.Checkpoint(_, var refuges) -> Optional.ofNullable(refuges.get(rank));
            case RestartSource.Memory _, RestartSource.Joined _ -> Optional.empty();
        };
    }

    /**
     * Gives a missing rank a node, if there is one for it.
     *
     * @return whether that node was a spare one
     */
    private boolean settle(RestartSource source, int rank, long now) {
        Optional<NodeInfo> refuge = refuge(source, rank);
        Optional<NodeInfo> node =
                source instanceof RestartSource.Mirrors
                        ? refuge
                        : refuge.or(() -> placer.replacementFor(rank));
        node.ifPresent(chosen -> ranks.placed(rank, chosen, now));
        return node.filter(NodeInfo::spare).isPresent();
    }

    /** Has placed ranks opened, from what the decision says. */
    private void host(RestartSource source, List<Integer> fills, List<Integer> placed) {
        out.host(
                placed.stream()
                        .map(
                                rank ->
                                        new RankAssignment(
                                                rank,
                                                source.ofMissing(rank),
                                                told.linksAtBirth(rank, fills)))
                        .toList());
    }

    /** A node is there that was not: whom it is for is hosted. */
    Resuming onNode(Resuming under, long now) {
        int spares = 0;
        List<Integer> missing = missing();
        for (int rank : missing) {
            spares += settle(under.source(), rank, now) ? 1 : 0;
        }
        host(under.source(), under.fills(), missing.stream().filter(ranks::hasNode).toList());
        return under.with(under.attempt().tookSpares(spares));
    }
}
