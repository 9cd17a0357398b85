package dev.penstock.actors.cluster;

import akka.actor.testkit.typed.Effect;
import akka.actor.testkit.typed.javadsl.BehaviorTestKit;
import akka.actor.typed.ActorRef;
import akka.actor.typed.Terminated;
import dev.penstock.actors.simulation.World;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * A real {@link NodeRun} on a simulated node: its messages, timers and watches happen in virtual
 * time. Checks that an order is done once, and only if it is the owner's.
 */
final class SimShare {
    /** An order that was done. */
    private record Done(ActorRef<ClusterNode.Report> owner, long number) {}

    final SimClusterNode node;
    final SimRunFiles files;
    final ActorRef<NodeRun.Command> ref;
    final List<SimRankHost> hosts = new ArrayList<>();
    private final World world;
    private final BehaviorTestKit<NodeRun.Command> actor;
    private final Optional<SimHostedRun> hosted;
    private final Deque<NodeRun.Command> mailbox = new ArrayDeque<>();
    private final Map<Object, Long> timers = new HashMap<>();
    private final Set<ActorRef<?>> watched = new HashSet<>();
    private final Set<Done> done = new HashSet<>();
    private final long busyUntil;
    private ClusterNode.@Nullable Command lastWord;
    private ActorRef<ClusterNode.Report> owner;
    private long timersStarted;
    private boolean over;

    /**
     * @param hosted empty if the node refused it
     */
    SimShare(
            SimClusterNode node,
            BehaviorTestKit<NodeRun.Command> actor,
            ClusterNode.OpenRun order,
            Optional<SimHostedRun> hosted,
            long busyUntil) {
        this.node = node;
        this.world = node.world;
        this.files = node.cluster.files(order.runId());
        this.actor = actor;
        this.ref = actor.getRef();
        this.owner = order.owner();
        this.hosted = hosted;
        this.busyUntil = busyUntil;
    }

    boolean isOver() {
        return over;
    }

    String usedDriver() {
        return hosted.map(SimHostedRun::usedDriver).orElse("");
    }

    void relink(String directory) {
        hosted.ifPresent(run -> run.relink(directory));
    }

    boolean driverDies(String how) {
        return hosted.filter(run -> run.driverDies(how)).isPresent();
    }

    void lastWord(ClusterNode.Command word) {
        lastWord = word;
    }

    ActorRef<ClusterNode.Report> owner() {
        return owner;
    }

    // ---- what it does -------------------------------------------------------------------------

    /** What others have told the actor by now is done one after the other. */
    void takeMail() {
        while (actor.selfInbox().hasMessages()) {
            mailbox.add(actor.selfInbox().receiveMessage());
            long delay = Math.max(busyUntil - world.now(), world.between(0, 2_000_000));
            node.after(delay, this::runNext);
        }
        look(Optional.empty());
    }

    private void runNext() {
        NodeRun.Command next = mailbox.poll();
        if (next != null) {
            run(next);
        }
    }

    void run(NodeRun.Command command) {
        if (over) {
            return;
        }
        int drivers = driversStarted();
        node.told(
                () -> {
                    actor.run(command);
                    check(command, driversStarted() > drivers);
                    look(Optional.of(command));
                });
    }

    /** The owner that this share was watching is gone. */
    void onGone(ActorRef<?> who) {
        if (!over && watched.remove(who)) {
            node.told(
                    () -> {
                        actor.signal(new Terminated(who.unsafeUpcast()));
                        look(Optional.empty());
                    });
        }
    }

    private int driversStarted() {
        return hosted.map(SimHostedRun::driversStarted).orElse(0);
    }

    private void check(NodeRun.Command command, boolean driverStarted) {
        switch (command) {
            case NodeRun.StartDriver(long number, var from) -> {
                if (driverStarted && !from.equals(owner)) {
                    world.violated("%s starts a driver of %s for another", node, files.name());
                }
                if (driverStarted && !done.add(new Done(from, number))) {
                    world.violated("%s starts a driver of %s twice", node, files.name());
                }
            }
            case NodeRun.Adopt(var next) -> owner = next;
            case NodeRun.Close(var from) -> {
                if (!actor.isAlive() && !from.equals(owner)) {
                    world.violated("%s closes %s for somebody else", node, files.name());
                }
            }
            default -> {}
        }
    }

    /** What the actor wanted of its system. */
    private void look(Optional<NodeRun.Command> after) {
        int spawned = 0;
        for (Effect effect : actor.getAllEffects()) {
            switch (effect) {
                case Effect.TimerScheduled<?> timer -> start(timer);
                case Effect.TimerCancelled timer -> timers.remove(timer.key());
                case Effect.SpawnedAnonymous<?> _ -> {
                    host(after.orElseThrow(), spawned);
                    spawned++;
                }
                case Effect.WatchedWith<?, ?> watch ->
                        hosts.getLast().lastWord((NodeRun.Command) watch.message());
                case Effect.Watched<?> watch -> {
                    watched.add(watch.other());
                    node.cluster.watch(this, watch.other());
                }
                case Effect.Unwatched<?> watch -> watched.remove(watch.other());
                default -> throw new AssertionError("not simulated: " + effect);
            }
        }
        if (!over && !actor.isAlive()) {
            end();
        }
    }

    private void start(Effect.TimerScheduled<?> timer) {
        long number = ++timersStarted;
        timers.put(timer.key(), number);
        var command = (NodeRun.Command) timer.msg();
        node.after(
                timer.duration().toNanos(),
                () -> {
                    if (timers.remove(timer.key(), number)) {
                        run(command);
                    }
                });
    }

    private void host(NodeRun.Command command, int index) {
        var order = ((NodeRun.Host) command).order();
        if (!order.owner().equals(owner)) {
            world.violated("%s hosts %s for somebody else", node, order);
        }
        if (index == 0 && !done.add(new Done(order.owner(), order.order()))) {
            world.violated("%s hosts twice: %s", node, order);
        }
        long listed = world.now() + world.between(0, 3 * World.SECOND);
        hosts.add(new SimRankHost(this, order.ranks().get(index), listed));
    }

    /** Its actor has stopped, and all below it before. */
    private void end() {
        over = true;
        timers.clear();
        hosts.forEach(SimRankHost::end);
        hosted.ifPresent(SimHostedRun::close);
        world.note("%s has let go of %s", node, files.name());
        node.shareEnded(this, lastWord);
    }

    /** The process has ended. */
    void endWithProcess() {
        over = true;
        hosts.forEach(SimRankHost::end);
        hosted.ifPresent(SimHostedRun::close);
    }
}
