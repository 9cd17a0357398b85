package dev.penstock.actors.cluster;

import akka.actor.typed.ActorRef;
import dev.penstock.actors.supervisor.PipelineSupervisor;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;

/**
 * Which ranks of a run need a node, and how they get one:
 *
 * <pre>
 *   start --> homeless --room--> expected --the supervisor sees it there--> at home
 *                ^--its node is lost--|
 * </pre>
 *
 * Its keeper's thread only.
 */
final class RankSeating {
    private final ManagedRun kept;
    private final Runnable askSoon;

    /** Ranks that the supervisor wants started and that have no node yet. */
    private final Set<Integer> homeless = new TreeSet<>();

    /** Ranks whose node was told, but not seen by the supervisor yet. */
    private final Set<Integer> expected = new TreeSet<>();

    /** Ranks that were told to leave a node that may have them again. */
    private final Set<Integer> moving = new TreeSet<>();

    /** Addresses of nodes that live, but where a rank of this run fell silent or cannot start. */
    private final Set<String> avoided = new HashSet<>();

    private boolean moved;

    /**
     * @param askSoon has {@link #ask} called when more ranks may have died
     */
    RankSeating(ManagedRun kept, Runnable askSoon) {
        this.kept = kept;
        this.askSoon = askSoon;
    }

    // ---- asking -----------------------------------------------------------------------------

    /** A rank is to be started. */
    void start(int rank) {
        if (expected.contains(rank)) {
            return; // asked for in an earlier epoch, and on its way
        }
        NodeInventory.Entry home = kept.shares().homes().get(rank);
        if (!moving.remove(rank) && home != null) {
            avoid(home.offer().address()); // it lives, and yet the rank there is no more
        }
        homeless.add(rank);
        askSoon.run();
    }

    void avoid(String address) {
        avoided.add(address);
    }

    /** What comes back at this address is another node. */
    void avoidNoMore(String address) {
        avoided.remove(address);
    }

    /** Nothing of the run is at this node any more, and what was to come there needs room again. */
    void forget(String address) {
        Set<Integer> lost = kept.shares().ranksAt(address);
        lost.retainAll(expected);
        kept.shares().lost(address);
        expected.removeAll(lost);
        homeless.addAll(lost);
        askSoon.run();
    }

    /** For all that need room. */
    void ask() {
        if (kept.isSupervised() && !homeless.isEmpty()) {
            kept.wantRoom(kept.wish().of(homeless, avoided));
        }
    }

    /** Ranks leave their nodes for emptier ones. */
    void move(Set<Integer> ranks, ActorRef<ClusterRuns.RebalanceAnswer> replyTo) {
        if (!kept.isSupervised()) {
            return;
        }
        String line = "its ranks are spread over all nodes that have room";
        if (!ranks.isEmpty()) {
            moving.addAll(ranks);
            kept.tellSupervisor(new PipelineSupervisor.Move(ranks));
            line = "ranks %s go to emptier nodes when the step under way is saved".formatted(ranks);
        }
        kept.tellPeople("rebalance: " + line);
        replyTo.tell(new ClusterRuns.Rebalancing(kept.made().name(), line));
    }

    // ---- answers ----------------------------------------------------------------------------

    void onRoom(NodeInventory.Answer answer) {
        switch (answer) {
            case NodeInventory.Answer.Wanting(String line) -> {
                if (!line.equals(kept.detail())) {
                    kept.say(line);
                    kept.tellPeople(line);
                }
                tellNoRoom();
            }
            case NodeInventory.Answer.Granted(Map<Integer, NodeInventory.Entry> nodes) -> {
                if (kept.isSupervised()) {
                    onRoomForHomeless(nodes);
                } else {
                    kept.shares().place(nodes);
                    expected.addAll(nodes.keySet());
                    tellPlaces();
                    kept.enter(RunState.OPENING, "");
                }
            }
        }
    }

    /** Some may have gone elsewhere meanwhile: what was granted to them is given back. */
    private void onRoomForHomeless(Map<Integer, NodeInventory.Entry> nodes) {
        Map<Integer, NodeInventory.Entry> wanted = new TreeMap<>(nodes);
        wanted.keySet().retainAll(homeless);
        homeless.removeAll(wanted.keySet());
        expected.addAll(wanted.keySet());
        kept.shares().place(wanted);
        kept.shares()
                .homes()
                .forEach(
                        (rank, home) -> {
                            if (nodes.containsKey(rank) && !wanted.containsKey(rank)) {
                                kept.seated(rank, home);
                            }
                        });
        moved = true;
        kept.say("");
    }

    /** Said again and again, else the supervisor takes the ranks for lost. */
    void tellNoRoom() {
        if (!homeless.isEmpty()) {
            kept.tellSupervisor(new PipelineSupervisor.NoRoom(kept.detail()));
        }
    }

    /** Ranks go where their mirrors are, if there is room. */
    void takeIn(Map<Integer, String> processes, CompletableFuture<Boolean> answer) {
        Map<Integer, String> addresses = new TreeMap<>();
        processes.forEach(
                (rank, process) ->
                        kept.shares()
                                .addressOf(process)
                                .ifPresent(address -> addresses.put(rank, address)));
        if (addresses.size() < processes.size()) {
            answer.complete(false);
        } else {
            kept.wantSeats(addresses, answer);
        }
    }

    /** The supervisor sees a rank on a node, where it may have gone by itself. */
    void placed(int rank, String name, long pid) {
        expected.remove(rank);
        homeless.remove(rank);
        kept.shares()
                .node(name, pid)
                .filter(entry -> !entry.equals(kept.shares().homes().get(rank)))
                .ifPresent(
                        entry -> {
                            moved = true;
                            kept.shares().moved(rank, entry);
                            kept.seated(rank, entry);
                        });
    }

    /** All ranks are back; where they are is told if that is elsewhere. */
    void settled() {
        if (moved) {
            moved = false;
            tellPlaces();
        }
    }

    private void tellPlaces() {
        RunShares shares = kept.shares();
        Map<Integer, String> addresses = new TreeMap<>();
        shares.homes().forEach((rank, entry) -> addresses.put(rank, entry.offer().address()));
        String places = PlacementText.placed(shares.homes(), kept.wish().bytesAt(addresses));
        String ways =
                PlacementText.betweenHosts(shares.homes().values(), shares.isSealed())
                        .map(line -> "\n        " + line)
                        .orElse("");
        kept.tellPeople(places + ways);
    }
}
