package dev.penstock.actors.simulation;

import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.spi.VitalSigns;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * A process that hosts ranks: it may be killed, stopped for a while, or cut off from all others.
 * What is sent to and from it arrives in the order of its sender, some time later; while it is cut
 * off, nothing arrives; what it had sent when it died may or may not.
 */
final class SimProcess {
    private static final long MOST_DELAY = 3 * World.MILLISECOND;

    /** One for each rank that it was started for, or one that waits for any. */
    final List<NodeInfo> nodes;

    final Optional<Integer> startedFor;
    final SimClock clock;
    final List<SimRank> ranks = new ArrayList<>();
    private final World world;
    private final Map<Object, Long> lastArrivals = new HashMap<>();
    private final List<Runnable> deferred = new ArrayList<>();
    private final List<Runnable> heldBack = new ArrayList<>();
    private boolean alive = true;
    private boolean stopped;
    private boolean cutOff;
    private boolean losing;
    private boolean lastWordsAreLost;
    private boolean starved;
    private boolean otherwiseHarmed;
    private long starvedSince;
    private long turns;

    /** What its node was last asked by, and in which epoch. */
    @Nullable SimSupervisor supervisor;

    int epoch;

    SimProcess(World world, List<NodeInfo> nodes, Optional<Integer> startedFor, SimClock clock) {
        this.clock = clock;
        this.world = world;
        this.nodes = List.copyOf(nodes);
        this.startedFor = startedFor;
    }

    /** By which it is known to the system, and others of its nodes as well. */
    NodeInfo info() {
        return nodes.getFirst();
    }

    boolean isAlive() {
        return alive;
    }

    boolean isCutOff() {
        return cutOff;
    }

    /** Whether it can be talked to. */
    boolean isWell() {
        return alive && !stopped && !cutOff;
    }

    void at(long time, Runnable act) {
        world.at(time, () -> run(act));
    }

    void after(long nanos, Runnable act) {
        world.after(nanos, () -> run(act));
    }

    private void run(Runnable act) {
        if (!alive) {
            return;
        }
        if (stopped) {
            deferred.add(act);
        } else {
            act.run();
        }
    }

    /**
     * A message from here.
     *
     * @param sender whose messages overtake one another never
     */
    void send(Object sender, Runnable arrival) {
        world.at(arrivalOf(sender), () -> arriveFromHere(arrival));
    }

    private void arriveFromHere(Runnable arrival) {
        if (losing) {
            return;
        }
        if (cutOff) {
            heldBack.add(() -> arriveFromHere(arrival));
        } else if (alive || !lastWordsAreLost) {
            arrival.run();
        }
    }

    /** A message to here. */
    void receive(Object receiver, Runnable arrival) {
        world.at(arrivalOf(receiver), () -> arriveHere(arrival));
    }

    private void arriveHere(Runnable arrival) {
        if (losing) {
            return;
        }
        if (cutOff) {
            heldBack.add(() -> arriveHere(arrival));
        } else {
            run(arrival);
        }
    }

    private long arrivalOf(Object order) {
        boolean late = world.chance(0.02);
        long delay = world.between(0, late ? 40 * MOST_DELAY : MOST_DELAY);
        long last = lastArrivals.getOrDefault(order, 0L);
        long at = Math.max(last, world.now() + delay);
        lastArrivals.put(order, at);
        return at;
    }

    /** What its host sees of it. */
    Optional<VitalSigns> vitals() {
        if (!alive) {
            return Optional.empty();
        }
        if (!stopped) {
            turns++;
        }
        var thread = new VitalSigns.ThreadSigns(info().pid(), starved, 0, 0, turns);
        var state = stopped && !starved ? VitalSigns.State.STOPPED : VitalSigns.State.ALIVE;
        return Optional.of(new VitalSigns(info().pid(), state, List.of(thread)));
    }

    // ---- harm -----------------------------------------------------------------------------------

    void kill() {
        alive = false;
        lastWordsAreLost = world.chance(0.5);
    }

    void stopFor(long nanos) {
        otherwiseHarmed = true;
        standStillFor(nanos);
    }

    /** No processor is free for it; to all others that looks as if it stood still. */
    void starveFor(long nanos) {
        if (!stopped) {
            starved = true;
            starvedSince = world.now();
        }
        standStillFor(nanos);
    }

    /** Whether it has been starved for less than this, and is neither stopped nor cut off. */
    boolean isOnlyStarvedFor(long most) {
        return alive && starved && !otherwiseHarmed && world.now() - starvedSince < most;
    }

    private void standStillFor(long nanos) {
        if (!stopped) {
            stopped = true;
            world.after(nanos, this::goOn);
        }
    }

    private void goOn() {
        world.note("%s goes on", this);
        stopped = false;
        starved = false;
        List<Runnable> missed = List.copyOf(deferred);
        deferred.clear();
        missed.forEach(act -> after(0, act));
    }

    void cutOffFor(long nanos) {
        otherwiseHarmed = true;
        if (!cutOff) {
            cutOff = true;
            world.after(nanos, this::reconnect);
        }
    }

    /** A connection is reset: what is on its way is gone, and the sender does not know. */
    void loseMessagesFor(long nanos) {
        otherwiseHarmed = true;
        losing = true;
        world.after(nanos, () -> losing = false);
    }

    private void reconnect() {
        world.note("%s is connected again", this);
        cutOff = false;
        List<Runnable> missed = List.copyOf(heldBack);
        heldBack.clear();
        missed.forEach(arrival -> world.after(0, arrival));
    }

    @Override
    public String toString() {
        return "%s (pid %d)".formatted(info().name(), info().pid());
    }
}
