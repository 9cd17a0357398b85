package dev.penstock.actors.cluster;

import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.supervisor.PipelineSupervisor;
import java.time.Duration;
import java.util.Collections;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Consumer;

/**
 * One run of a {@link ClusterCoordinator}, from its submission to its end:
 *
 * <pre>
 *   WAITING --room--> OPENING --all shares built--> RUNNING --outcome--> ended
 *      ^--a node was lost---|                        |  ^
 *                      a node was lost, or links     v  | room, if ranks need any; all are back
 *                      taken up, shares found --> RECOVERING
 * </pre>
 */
final class KeptRun {
    private final ClusterRun made;
    private final NodeInventory nodes;
    private final Consumer<ClusterEffect> out;
    private final RunShares shares;
    private final RankSeating seating;
    private final RunTakeover takeover;
    private final RunProgress progress;
    private final NodeInventory.Wish wishOfAll;

    /** Whether a supervisor that took the run up has not met all its ranks yet. */
    private boolean gathers;

    private boolean supervised;
    private boolean wantsRoom;

    /** When this step is committed, ranks that were told to leave their nodes stay for good. */
    private long leaveBefore = Long.MAX_VALUE;

    /**
     * @param key for a run that nobody has begun
     * @param nodes in which it takes and gives back room
     */
    KeptRun(
            ClusterRun made,
            Optional<RunKey> key,
            NodeInventory nodes,
            Consumer<ClusterEffect> out,
            long now) {
        this.made = made;
        this.nodes = nodes;
        this.out = out;
        this.shares = new RunShares(made.name(), key, out);
        this.seating = new RankSeating(shares);
        this.takeover = new RunTakeover(made, shares, out, now);
        this.progress = new RunProgress(made, RunState.WAITING, now);
        this.wishOfAll =
                new NodeInventory.Wish(
                        made.plannedBytes(Collections.nCopies(made.plan().ranks(), 0)),
                        made::plannedBytes,
                        made.ranksPerNode(),
                        made.crossesHosts());
        this.wantsRoom = !takeover.looks();
        if (takeover.looks()) {
            progress.enter(RunState.RECOVERING, "its seed was gone: looks for its ranks", now);
            tellPeople("the run's seed was gone: another looks for its ranks");
            nodes.all().forEach(takeover::ask);
        }
    }

    // ---- where it stands --------------------------------------------------------------------

    RunStanding standing() {
        return progress.standing(shares.nodes());
    }

    boolean hasEnded() {
        return progress.state().hasEnded();
    }

    void onStep(long committed, long now) {
        progress.reached(committed, now);
        if (committed >= leaveBefore) {
            nobodyLeaves(); // the step could not be saved
        }
    }

    void onRecovering(int epoch, String cause, long now) {
        progress.enter(RunState.RECOVERING, "in epoch %d: %s".formatted(epoch, cause), now);
    }

    /** All ranks are back; where they are is told if that is elsewhere. */
    void onRecovered(long fromStep, long now) {
        gathers = false;
        nobodyLeaves();
        progress.reached(fromStep, now);
        progress.enter(RunState.RUNNING, "", now);
        if (seating.settled()) {
            tellPlaces();
        }
        shares.unused().forEach(this::letGo);
    }

    /** The supervisor might send a rank back there, where others have the room by now. */
    private void letGo(String address) {
        seating.forget(address);
        shares.close(address);
    }

    /** Whether a node has still to say if it has ranks of this run. */
    boolean asks(NodeOffer node) {
        return takeover.asks(node);
    }

    // ---- room -------------------------------------------------------------------------------

    boolean wantsRoom() {
        return wantsRoom && (!supervised || seating.needsRoom()); // else ranks found it themselves
    }

    /** For all its ranks, anywhere; of a run under way, for those that need a node. */
    NodeInventory.Wish wish() {
        return supervised ? seating.narrow(wishOfAll) : wishOfAll;
    }

    void onRoom(NodeInventory.Answer answer, long now) {
        switch (answer) {
            case NodeInventory.Answer.Wanting(String line) -> {
                if (!line.equals(progress.detail())) {
                    progress.say(line, now);
                    tellPeople(line);
                }
                tellNoRoom();
            }
            case NodeInventory.Answer.Granted(Map<Integer, NodeOffer> granted) -> {
                wantsRoom = false;
                seating.place(granted);
                if (supervised) {
                    progress.say("", now);
                } else if (seating.settled()) {
                    tellPlaces();
                    progress.enter(RunState.OPENING, "", now);
                }
            }
        }
    }

    /** Said again and again, else the supervisor takes the ranks for lost. */
    private void tellNoRoom() {
        if (seating.needsRoom()) {
            tellSupervisor(new PipelineSupervisor.NoRoom(progress.detail()));
        }
    }

    /** Ranks that died together are started together. */
    void onGathered() {
        wantsRoom = supervised && seating.needsRoom();
    }

    private void gather() {
        out.accept(new ClusterEffect.Gather(made.name()));
    }

    /** The supervisor wants a rank started. */
    void onStartRank(int rank) {
        if (seating.start(rank)) {
            gather();
        }
    }

    /** The supervisor has a rank hosted in that process. */
    void onPlaced(int rank, String process) {
        seating.placed(rank, process).ifPresent(node -> seat(rank, node));
    }

    private void seat(int rank, NodeOffer node) {
        nodes.seat(made.name(), wishOfAll, rank, node.address());
    }

    /** Ranks go where their mirrors are, if there is room. */
    boolean takeIn(Map<Integer, String> processes) {
        Map<Integer, String> addresses = new TreeMap<>();
        processes.forEach(
                (rank, process) ->
                        shares.node(process)
                                .ifPresent(node -> addresses.put(rank, node.address())));
        return addresses.size() == processes.size()
                && nodes.takeAt(made.name(), wishOfAll, addresses);
    }

    /** Spreads a run over all nodes that have room; a line for people. */
    String rebalance() {
        if (!progress.is(RunState.RUNNING)) {
            return "it is %s: only ranks of a run that trains move"
                    .formatted(progress.state().name().toLowerCase(Locale.ROOT));
        }
        int crowded = leave(seating.careful(wishOfAll), 0);
        String line =
                crowded == 0
                        ? "its ranks are spread over all nodes that have room"
                        : goToEmptierNodes(crowded);
        tellPeople("rebalance: " + line);
        return line;
    }

    private static String goToEmptierNodes(int ranks) {
        return "%s to emptier nodes when the step under way is saved"
                .formatted(PlacementText.go(ranks));
    }

    /**
     * A node takes ranks in beyond the run's limit where the run would lose a step without, as it
     * holds their mirrors, or would wait. Now that all train, as many go on to free nodes; of a run
     * that spreads by itself, as many as spread it evenly.
     *
     * @param withheld addresses of nodes that may not be had yet
     */
    void relieve(Set<String> withheld) {
        if (!progress.is(RunState.RUNNING) || leaveBefore < Long.MAX_VALUE) {
            return;
        }
        NodeInventory.Wish wish = seating.careful(wishOfAll).avoiding(withheld);
        if (made.spreads()) {
            int crowded = leave(wish, 0);
            if (crowded > 0) {
                tellPeople("rebalance: " + goToEmptierNodes(crowded));
            }
            return;
        }
        made.ranksPerNode()
                .ifPresent(
                        most -> {
                            int guests = leave(wish, most);
                            if (guests > 0) {
                                tellPeople(
                                        "%s to free nodes when the step under way is saved: at most %d may be on a node"
                                                .formatted(PlacementText.go(guests), most));
                            }
                        });
    }

    private int leave(NodeInventory.Wish wish, int most) {
        Set<Integer> leaving = nodes.crowded(made.name(), wish, most);
        if (!leaving.isEmpty()) {
            leaveBefore = progress.step() + 3; // after the step under way, and one that is late
            seating.move(leaving);
            tellSupervisor(new PipelineSupervisor.Move(leaving));
        }
        return leaving.size();
    }

    private void nobodyLeaves() {
        leaveBefore = Long.MAX_VALUE;
        nodes.forgo(made.name());
    }

    private void tellPlaces() {
        String places = PlacementText.placed(shares.homes(), wishOfAll.bytesAt(shares.addresses()));
        String ways =
                PlacementText.betweenHosts(shares.homes().values(), shares.isSealed())
                        .map(line -> "\n        " + line)
                        .orElse("");
        tellPeople(places + ways);
    }

    // ---- nodes and their shares -------------------------------------------------------------

    /** A node came. */
    void onNode(NodeOffer node) {
        takeover.ask(node);
        if (!asks(node)) {
            shares.cameBack(node.address()); // else its answer says what is to come of its share
        }
    }

    void onReport(ClusterNode.Report report, long now) {
        String node = report.node();
        if (report instanceof ClusterNode.Answer answer && !shares.isAwaited(answer)) {
            if (report instanceof ClusterNode.RunOpened && !shares.isAt(node)) {
                shares.close(node); // it was taken for dead before it had built it
            }
            return; // said before, or of an order that was taken back
        }
        switch (report) {
            case ClusterNode.ShareKept kept ->
                    nodes.at(node).ifPresent(known -> onShareKept(known, kept));
            case ClusterNode.ShareAbsent _ -> {
                shares.absent(node);
                nodes.at(node).ifPresent(takeover::answered);
            }
            case ClusterNode.RunOpened opened -> {
                shares.opened(opened);
                if (progress.is(RunState.OPENING) && shares.allOpen()) {
                    supervise(RunState.RUNNING, "", now);
                } else if (progress.is(RunState.RUNNING) && shares.unused().contains(node)) {
                    letGo(node); // its ranks have found another place meanwhile
                }
            }
            case ClusterNode.RanksHosted _ -> {}
            case ClusterNode.RunRefused(String _, long _, String reason) -> {
                if (shares.isAt(node)) {
                    onRefused(node, reason, now);
                }
            }
            case ClusterNode.ShareGone _ -> {
                if (shares.isAt(node)) {
                    onNoShare(node, "it has given up its share of the run");
                }
            }
            case ClusterNode.DriverStarted(String _, long _, String directory) ->
                    shares.driverStarted(node, directory)
                            .ifPresent(
                                    former -> {
                                        linkRestarted(former, directory);
                                        tellMovedDrivers();
                                    });
            case ClusterNode.DriverRefused(String _, long _, String how) -> {
                if (shares.hasDriver(node)) {
                    onDriverDied(node, how, now);
                }
            }
            case ClusterNode.DriverDied(String _, String directory, String how) -> {
                if (shares.isDriverOf(node, directory)) { // else it is said again
                    onDriverDied(node, how, now);
                }
            }
        }
    }

    private void onRefused(String node, String reason, long now) {
        if (!supervised) {
            fail(cannotTakePart(node, reason), now);
            return;
        }
        seating.avoid(node);
        onNoShare(node, reason);
    }

    private void onNoShare(String node, String reason) {
        tellPeople(cannotTakePart(node, reason));
        boolean hadDriver = shares.hasDriver(node);
        seating.forget(node);
        shares.close(node);
        nodes.leave(made.name(), node);
        gather();
        if (hadDriver) {
            restartLink();
        }
    }

    private String cannotTakePart(String node, String reason) {
        return "node %s cannot take part: %s".formatted(shares.name(node), reason);
    }

    private void onDriverDied(String node, String how, long now) {
        if (takeover.looks() && !supervised) {
            shares.driverDied(node); // the supervisor will be told
        } else if (!supervised) {
            fail("the media driver of node %s died: %s".formatted(shares.name(node), how), now);
        } else {
            tellSupervisor(new PipelineSupervisor.LinkDied(shares.driverDied(node), how));
        }
    }

    /**
     * The supervisor wants drivers where there are none.
     *
     * @param gone directories of drivers that are gone, as far as it knows
     */
    void restartLink(Set<String> gone) {
        shares.driversAreGone(gone);
        restartLink();
    }

    private void restartLink() {
        if (!shares.restartDrivers()) {
            linkRestarted("", ""); // nobody needs one
        }
    }

    private void linkRestarted(String former, String directory) {
        tellSupervisor(new PipelineSupervisor.LinkRestarted(former, directory));
    }

    void onNodeLost(NodeOffer node, String how, long now) {
        String address = node.address();
        seating.avoidNoMore(address);
        takeover.lost(node);
        if (!shares.isAt(address)) {
            return;
        }
        if (supervised) {
            onShareLost(node, how);
        } else if (takeover.looks()) {
            shares.lost(address);
        } else {
            shares.close();
            nodes.release(made.name());
            progress.enter(RunState.WAITING, "", now);
            tellPeople("node %s is gone: %s".formatted(node.text(), how));
            wantsRoom = true;
        }
    }

    private void onShareLost(NodeOffer node, String how) {
        boolean hadDriver = shares.hasDriver(node.address());
        boolean wasToStartIt = shares.awaitsDriverOf(node.address());
        Set<Integer> ranks = shares.ranksAt(node.address());
        seating.forget(node.address());
        gather();
        boolean othersUsedIt = shares.isOn(node.host()); // else nobody misses the host's driver
        tellSupervisor(
                new PipelineSupervisor.NodeDied(node.process(), hadDriver && othersUsedIt, how));
        if (gathers) {
            tellSupervisor(new PipelineSupervisor.Nowhere(ranks));
        }
        boolean nobodyWill = wasToStartIt && !othersUsedIt && !shares.awaitsDrivers();
        if (nobodyWill || !shares.isAnywhere()) {
            linkRestarted("", ""); // the next node starts a driver before it hosts
        }
    }

    // ---- shares of a seed that is gone ------------------------------------------------------

    private void onShareKept(NodeOffer node, ClusterNode.ShareKept kept) {
        if (hasEnded()) {
            shares.close(node.address());
            return;
        }
        Set<Integer> found = takeover.onKept(node, kept);
        seating.adopted(found);
        found.forEach(rank -> seat(rank, node));
        if (supervised) {
            tellMovedDrivers();
        }
    }

    /** Ranks of a late share may name drivers of which nobody has told the supervisor. */
    private void tellMovedDrivers() {
        if (!shares.lacksDriver() && !shares.awaitsDrivers()) {
            takeover.movedDrivers().forEach(this::linkRestarted);
        }
    }

    /**
     * A supervisor takes the run up when a share has each rank, or when all have answered who might
     * have one: then what is in no share is nowhere.
     *
     * @param members of the cluster
     */
    void lookForShares(Set<Long> members, long now) {
        if (!takeover.looks()) {
            return;
        }
        boolean done = takeover.isDone(members, nodes.all(), now);
        if (!supervised && (done || takeover.isComplete())) {
            superviseFound(now);
        }
        if (done) {
            takeover.end();
        }
    }

    private void superviseFound(long now) {
        supervise(RunState.RECOVERING, "its seed was gone: its ranks are taken up", now);
        gathers = true;
        takeover.movedDrivers().forEach(this::linkRestarted);
        if (shares.lacksDriver()) {
            tellSupervisor(new PipelineSupervisor.LinkDied("while the run's seed was gone"));
        }
        if (!takeover.nowhere().isEmpty()) {
            tellSupervisor(new PipelineSupervisor.Nowhere(takeover.nowhere()));
        }
    }

    private void supervise(RunState next, String why, long now) {
        supervised = true;
        progress.enter(next, why, now);
        out.accept(new ClusterEffect.Supervise(made.name()));
        shares.beginHosting();
    }

    // ---- time and the end -------------------------------------------------------------------

    void onTick(long now) {
        nodes.all().forEach(takeover::ask);
        shares.onTick(address -> nodes.at(address).filter(node -> !asks(node)).isPresent());
        Duration limit = made.plan().timeouts().start();
        if (progress.is(RunState.OPENING) && progress.inState(now).compareTo(limit) > 0) {
            fail(
                    "expected all nodes to build their share within %d s, but %s did not; see timeouts.start"
                            .formatted(limit.toSeconds(), shares.opening()),
                    now);
        }
        tellNoRoom();
    }

    void onStop(long now) {
        if (supervised) {
            tellSupervisor(new PipelineSupervisor.Interrupt());
        } else {
            onEnded(new RunOutcome.Interrupted(progress.step()), now);
        }
    }

    /** Of a run that nobody supervises yet. */
    private void fail(String reason, long now) {
        if (progress.is(RunState.WAITING) || progress.is(RunState.OPENING)) {
            onEnded(new RunOutcome.Failed(progress.step(), reason), now);
        }
    }

    void onEnded(RunOutcome outcome, long now) {
        supervised = false;
        wantsRoom = false;
        takeover.end();
        shares.close();
        nodes.release(made.name());
        switch (outcome) {
            case RunOutcome.Completed(long last) -> end(last, RunState.COMPLETED, "", now);
            case RunOutcome.Interrupted(long last) -> end(last, RunState.STOPPED, "", now);
            case RunOutcome.Failed(long last, String reason) ->
                    end(last, RunState.FAILED, reason, now);
        }
        out.accept(new ClusterEffect.End(made.name(), outcome, progress.age(now)));
    }

    private void end(long last, RunState how, String why, long now) {
        progress.reached(last, now);
        progress.enter(how, why, now);
    }

    private void tellPeople(String line) {
        out.accept(new ClusterEffect.TellPeople(made.name(), line));
    }

    private void tellSupervisor(PipelineSupervisor.Command command) {
        if (supervised) {
            out.accept(new ClusterEffect.TellSupervisor(made.name(), command));
        }
    }
}
