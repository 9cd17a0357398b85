package dev.penstock.actors.cluster;

import dev.penstock.actors.spi.RunOutcome;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Consumer;
import java.util.stream.Collectors;

/**
 * Decides where the ranks of a cluster's runs live, and what becomes of the runs when nodes come,
 * go or refuse, and when a run's seed is gone. A plain object: it is told what happened and when,
 * and asked with {@link #drain} what is to be done; it knows neither actors, clocks nor files. Not
 * thread-safe. What it is told of runs that it does not know is ignored.
 *
 * <p>Every {@code now} is in nanoseconds on one clock that never goes back.
 */
final class ClusterCoordinator {
    private static final NodeInventory.Answer OTHERS_FIRST =
            new NodeInventory.Answer.Wanting(
                    "waits until the ranks of runs that lost their seed are found");

    private final NodeInventory nodes = new NodeInventory();
    private final Map<String, KeptRun> runs = new LinkedHashMap<>();
    private Set<Long> members;

    /** Whether it is not known yet which runs a former seed kept. */
    private boolean looking;

    /** Processes where ranks may be of runs that somebody else still holds. */
    private Set<String> heldElsewhere = Set.of();

    /** By then, nodes have given up what nobody has found. */
    private long unknownUntil;

    private boolean someMayBeTaken;
    private List<ClusterEffect> effects = new ArrayList<>();

    /**
     * @param members of the cluster, by the number of their membership
     */
    ClusterCoordinator(Set<Long> members) {
        this.members = Set.copyOf(members);
    }

    /** Everything that is to be done since the last call. */
    List<ClusterEffect> drain() {
        List<ClusterEffect> drained = effects;
        effects = new ArrayList<>();
        return drained;
    }

    // ---- a seed before this one --------------------------------------------------------------

    /** Another seed may have kept runs: they are looked for. */
    void onLooking(long now) {
        looking = true;
        unknownUntil = now + ClusterRun.LEAST_PATIENCE.toNanos();
    }

    /**
     * All runs that another seed kept have been looked at.
     *
     * @param processes where the journals of those say that ranks are which somebody still holds
     */
    void onLooked(Set<String> processes, long now) {
        looking = false;
        heldElsewhere = Set.copyOf(processes);
        serve(now);
    }

    /**
     * Whether ranks may be on a node that are not counted there yet. Only these nodes are withheld:
     * a lock that is never freed must not keep other runs from the rest of the cluster.
     */
    private boolean mayBeTaken(NodeOffer node, long now) {
        boolean unknown = looking || heldElsewhere.contains(node.process());
        return (unknown && now < unknownUntil)
                || runs.values().stream().anyMatch(run -> run.asks(node));
    }

    // ---- what is there ----------------------------------------------------------------------

    Collection<NodeOffer> nodes() {
        return nodes.all();
    }

    List<RunStanding> standings() {
        return runs.values().stream().map(KeptRun::standing).toList();
    }

    Optional<RunStanding> standing(String run) {
        return Optional.ofNullable(runs.get(run)).map(KeptRun::standing);
    }

    // ---- runs -------------------------------------------------------------------------------

    /**
     * Keeps a run from now on: one that was submitted, or whose seed is gone.
     *
     * @param key for its frames, if it is new
     */
    void keep(ClusterRun run, Optional<RunKey> key, long now) {
        runs.put(run.name(), new KeptRun(run, key, nodes, effect -> effects.add(effect), now));
        serve(now);
    }

    void onStop(String run, long now) {
        with(run, now, kept -> kept.onStop(now));
    }

    /** A line for people; empty if there is no such run. */
    Optional<String> rebalance(String run) {
        return Optional.ofNullable(runs.get(run)).map(KeptRun::rebalance);
    }

    /** The run's supervisor has ended, or cannot begin. */
    void onEnded(String run, RunOutcome outcome, long now) {
        with(run, now, kept -> kept.onEnded(outcome, now));
    }

    void onStep(String run, long committed, long now) {
        with(run, now, kept -> kept.onStep(committed, now));
    }

    void onRecovering(String run, int epoch, String cause, long now) {
        with(run, now, kept -> kept.onRecovering(epoch, cause, now));
    }

    void onRecovered(String run, long fromStep, long now) {
        with(run, now, kept -> kept.onRecovered(fromStep, now));
        serve(now);
    }

    // ---- what a supervisor wants ------------------------------------------------------------

    void onStartRank(String run, int rank, long now) {
        with(run, now, kept -> kept.onStartRank(rank));
    }

    /** See {@link ClusterEffect.Gather}. */
    void onGathered(String run, long now) {
        with(run, now, KeptRun::onGathered);
        serve(now);
    }

    void onPlaced(String run, int rank, String process, long now) {
        with(run, now, kept -> kept.onPlaced(rank, process));
    }

    /** Whether these processes have room for ranks whose mirrors they hold. */
    boolean takeIn(String run, Map<Integer, String> processes) {
        KeptRun kept = runs.get(run);
        return kept != null && !kept.hasEnded() && kept.takeIn(processes);
    }

    /**
     * Media drivers are wanted where there are none.
     *
     * @param gone directories of drivers that are gone, as far as the supervisor knows
     */
    void onRestartLink(String run, Set<String> gone, long now) {
        with(run, now, kept -> kept.restartLink(gone));
    }

    // ---- nodes ------------------------------------------------------------------------------

    /** A node said who it is, perhaps once more. */
    void onNode(NodeOffer node, long now) {
        Optional<NodeOffer> known = nodes.at(node.address());
        if (known.filter(node::equals).isPresent()) {
            return;
        }
        known.ifPresent(former -> lost(former, "its process was started anew", now));
        nodes.add(node);
        runs.values().forEach(run -> run.onNode(node));
        serve(now);
    }

    /** The process is gone; of one that has come back as another, nothing follows. */
    void onNodeGone(String process, String how, long now) {
        nodes.all().stream()
                .filter(node -> node.process().equals(process))
                .findFirst()
                .ifPresent(
                        node -> {
                            lost(node, how, now);
                            serve(now);
                        });
    }

    private void lost(NodeOffer node, String how, long now) {
        nodes.remove(node.address());
        runs.values().forEach(run -> run.onNodeLost(node, how, now));
    }

    /** What a node says of its share of a run; it may come when the run has ended. */
    void onReport(String run, ClusterNode.Report report, long now) {
        KeptRun kept = runs.get(run);
        if (kept != null) {
            act(kept, now, it -> it.onReport(report, now));
        }
    }

    /** Time passed; to be told every second. */
    void onTick(Set<Long> present, long now) {
        members = Set.copyOf(present);
        runs.values().forEach(run -> act(run, now, it -> it.onTick(now)));
        if (someMayBeTaken) {
            serve(now);
        }
    }

    // ---- what follows -----------------------------------------------------------------------

    private void with(String run, long now, Consumer<KeptRun> what) {
        KeptRun kept = runs.get(run);
        if (kept != null && !kept.hasEnded()) {
            act(kept, now, what);
        }
    }

    private void act(KeptRun run, long now, Consumer<KeptRun> what) {
        boolean hadEnded = run.hasEnded();
        what.accept(run);
        run.lookForShares(members, now);
        if (run.hasEnded() && !hadEnded) {
            serve(now); // others may have its room
        }
    }

    /**
     * In the order of submission; a small run may pass a large one that does not fit yet. None gets
     * a node where a run of a former seed may be.
     */
    private void serve(long now) {
        runs.values().forEach(run -> run.lookForShares(members, now));
        Set<String> maybeTaken =
                nodes.all().stream()
                        .filter(node -> mayBeTaken(node, now))
                        .map(NodeOffer::address)
                        .collect(Collectors.toSet());
        someMayBeTaken = !maybeTaken.isEmpty();
        runs.forEach(
                (name, run) -> {
                    if (run.wantsRoom()) {
                        var answer = nodes.take(name, run.wish().avoiding(maybeTaken));
                        boolean waits = answer instanceof NodeInventory.Answer.Wanting;
                        run.onRoom(waits && someMayBeTaken ? OTHERS_FIRST : answer, now);
                    }
                });
        runs.values().forEach(run -> run.relieve(maybeTaken)); // who waits comes first
    }
}
