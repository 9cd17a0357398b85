package dev.penstock.actors.cluster;

import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.supervisor.RunBeginning;
import java.time.Duration;
import java.util.Collection;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * The shares of a run whose seed is gone. Asks every node for its share, and knows whom the run has
 * to hear before it is known who lives: the processes to which its journal says that ranks went,
 * for as long as they are members of the cluster and keep their shares. Where the journal does not
 * say so of every rank, every node that there is. Of a new run nothing is looked for.
 */
final class RunTakeover {
    /** By then, a seed that has just come has heard of all members of its cluster. */
    static final Duration SETTLING = Duration.ofSeconds(5);

    private final ClusterRun made;
    private final RunShares shares;
    private final Consumer<ClusterEffect> out;
    private final long sinceNanos;

    /** Processes by rank, as journalled. */
    private final Map<Integer, String> placed;

    /** Processes that have said what they have. */
    private final Set<String> answered = new HashSet<>();

    /** Hosts by the directories of drivers that their nodes know of. */
    private final Map<String, String> drivers = new TreeMap<>();

    private boolean looks;

    RunTakeover(ClusterRun made, RunShares shares, Consumer<ClusterEffect> out, long now) {
        this.made = made;
        this.shares = shares;
        this.out = out;
        this.sinceNanos = now;
        this.looks = made.beginning() instanceof RunBeginning.TakenUp;
        this.placed =
                made.beginning() instanceof RunBeginning.TakenUp taken
                        ? taken.run().placed()
                        : Map.of();
    }

    /** Whether shares are still looked for. */
    boolean looks() {
        return looks;
    }

    void end() {
        looks = false;
    }

    /** A node that there is may have kept a share. The question, or its answer, may be lost. */
    void ask(NodeOffer node) {
        if (asks(node)) {
            out.accept(new ClusterEffect.AskForShare(made.name(), node.address()));
        }
    }

    boolean asks(NodeOffer node) {
        return looks && !hasAnswered(node);
    }

    /** A process has said what it has. */
    void answered(NodeOffer node) {
        answered.add(node.process());
    }

    /** What it said counts no more: if it was only away, it is asked again. */
    void lost(NodeOffer node) {
        answered.remove(node.process());
    }

    private boolean hasAnswered(NodeOffer node) {
        return answered.contains(node.process());
    }

    /**
     * A node has kept a share. One that comes late is adopted if nothing has taken its place, and
     * is closed otherwise.
     *
     * @return the ranks that are there: as the node says, or as the journal does, since some may
     *     have gone there by themselves
     */
    Set<Integer> onKept(NodeOffer node, ClusterNode.ShareKept kept) {
        answered(node);
        if (shares.isAt(node.address())) {
            return Set.of(); // it was asked twice, or has another share by now
        }
        if (!looks && !shares.fits(node, kept)) {
            shares.close(node.address());
            return Set.of();
        }
        Set<Integer> ranks = new TreeSet<>(kept.ranks());
        ranks.removeAll(shares.homes().keySet());
        if (looks) {
            placed.forEach(
                    (rank, process) -> {
                        if (process.equals(node.process())) {
                            ranks.add(rank);
                        }
                    });
        }
        shares.adopt(node, kept, ranks);
        kept.namedDrivers().forEach(named -> drivers.put(named, node.host()));
        drivers.put(kept.driver(), node.host());
        return ranks;
    }

    /**
     * Drivers that were started again in an earlier seed's time, by a directory before. Some nodes
     * may not have heard of it.
     */
    Map<String, String> movedDrivers() {
        Map<String, String> moved = new TreeMap<>();
        drivers.forEach(
                (directory, host) ->
                        shares.lastDriverOn(host)
                                .filter(now -> !now.equals(directory))
                                .ifPresent(now -> moved.put(directory, now)));
        return moved;
    }

    /** Whether each rank is in a share, and each host has its driver. */
    boolean isComplete() {
        return nowhere().isEmpty() && !shares.lacksDriver();
    }

    /** The ranks that no share has. */
    Set<Integer> nowhere() {
        Set<Integer> nowhere =
                IntStream.range(0, made.plan().ranks()).boxed().collect(Collectors.toSet());
        nowhere.removeAll(shares.homes().keySet());
        return nowhere;
    }

    /**
     * Whether nobody is waited for any more.
     *
     * @param members of the cluster, by the number of their membership
     * @param nodes that have introduced themselves
     */
    boolean isDone(Set<Long> members, Collection<NodeOffer> nodes, long now) {
        Duration patience = ClusterRun.patience(made.plan().timeouts());
        if (now - sinceNanos > patience.toNanos()) {
            return true;
        }
        boolean settled = now - sinceNanos > SETTLING.toNanos();
        return placed.size() == made.plan().ranks()
                ? placed.values().stream()
                        .filter(process -> !answered.contains(process))
                        .allMatch(process -> settled && !members.contains(NodeInfo.uid(process)))
                : settled && nodes.stream().allMatch(this::hasAnswered);
    }
}
