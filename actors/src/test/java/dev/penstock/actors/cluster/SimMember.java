package dev.penstock.actors.cluster;

import dev.penstock.actors.simulation.World;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/**
 * A process of a simulated cluster: it may be killed, stand still, or be cut off. What is sent from
 * one to another arrives in order, unless it is lost.
 */
abstract class SimMember {
    private static final long MOST_DELAY = 5 * World.MILLISECOND;

    final ClusterSimulation cluster;
    final World world;
    final String name;

    /** Of its membership, like no other's. */
    final long uid;

    private final Map<SimMember, Long> lastArrivals = new HashMap<>();
    private final Set<SimMember> quarantined = new HashSet<>();
    private boolean alive = true;
    private long pausedUntil;
    private long cutUntil;
    private long losesUntil;
    private boolean cutLoses;

    SimMember(ClusterSimulation cluster, String name, long uid) {
        this.cluster = cluster;
        this.world = cluster.world;
        this.name = name;
        this.uid = uid;
    }

    boolean isAlive() {
        return alive;
    }

    boolean isPaused() {
        return world.now() < pausedUntil;
    }

    boolean isCut() {
        return world.now() < cutUntil;
    }

    /** Whether it lives, moves, and can be talked to. */
    boolean isWell() {
        return alive && !isPaused() && !isCut();
    }

    void after(long nanos, Runnable act) {
        world.after(nanos, () -> run(act));
    }

    /** Whether the two hear each other. */
    boolean reaches(SimMember other) {
        return isWell()
                && other.isWell()
                && !quarantined.contains(other)
                && !other.quarantined.contains(this);
    }

    /** What it has to do when it stands still is done when it wakes. */
    private void run(Runnable act) {
        if (!alive) {
            return;
        }
        if (isPaused()) {
            world.at(pausedUntil, () -> run(act));
        } else {
            act.run();
        }
    }

    void pauseFor(long nanos) {
        pausedUntil = Math.max(pausedUntil, world.now() + nanos);
    }

    /**
     * @param loses whether what is sent meanwhile is lost; it comes late otherwise
     */
    void cutOffFor(long nanos, boolean loses) {
        cutUntil = Math.max(cutUntil, world.now() + nanos);
        cutLoses = loses;
    }

    void loseMessagesFor(long nanos) {
        losesUntil = Math.max(losesUntil, world.now() + nanos);
    }

    /** A message from here. */
    void send(SimMember to, Runnable arrival) {
        long delay = world.between(0, MOST_DELAY);
        if (cluster.scenario.slow() && world.chance(0.1)) {
            delay += world.between(0, 4 * World.SECOND);
        }
        long at = Math.max(lastArrivals.getOrDefault(to, 0L), world.now() + delay);
        lastArrivals.put(to, at);
        world.at(at, () -> arrive(to, arrival));
    }

    private void arrive(SimMember to, Runnable arrival) {
        long now = world.now();
        if (now < losesUntil || now < to.losesUntil) {
            return;
        }
        if (isCut() || to.isCut()) {
            SimMember cut = isCut() ? this : to;
            if (!cut.cutLoses) {
                world.at(cut.cutUntil, () -> arrive(to, arrival));
            }
            return;
        }
        if (!to.quarantined.contains(this)) {
            to.run(arrival);
        }
    }

    /** Nothing is heard any more of a member that the cluster has removed, though it may live. */
    void quarantine(SimMember removed) {
        quarantined.add(removed);
        onRemoved(removed);
    }

    /** Its process ends. */
    void kill() {
        if (alive) {
            alive = false;
            ended();
            cluster.onDeath(this);
        }
    }

    /** What goes with it. */
    abstract void ended();

    /** The cluster has removed another member. */
    abstract void onRemoved(SimMember other);

    @Override
    public String toString() {
        return name + '/' + uid;
    }
}
