package dev.penstock.actors.cluster;

import akka.actor.testkit.typed.Effect;
import akka.actor.testkit.typed.javadsl.BehaviorTestKit;
import akka.actor.typed.ActorRef;
import dev.penstock.actors.simulation.World;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** A process that works, with the real {@link ClusterNode} in it. */
final class SimClusterNode extends SimMember {
    /** A share that was built. */
    private record Built(String run, ActorRef<ClusterNode.Report> owner, long number) {}

    final ClusterScenario.Place place;
    final NodeOffer offer;
    private final BehaviorTestKit<ClusterNode.Command> actor;
    private final List<SimShare> shares = new ArrayList<>();
    private final Set<Built> built = new HashSet<>();
    private @Nullable SimHostedRun joined;
    private int refusedShares;
    private int refusedDrivers;
    private int refusedRanks;

    SimClusterNode(ClusterSimulation cluster, ClusterScenario.Place place, long uid) {
        super(cluster, place.name(), uid);
        this.place = place;
        this.offer =
                new NodeOffer(
                        place.name(),
                        CoordinatedCluster.address(place.name()),
                        place.host(),
                        1, // as in a container
                        uid,
                        "0.1",
                        List.of("cpu"),
                        place.gib() * ImaginedRun.GIB,
                        2);
        this.actor = cluster.spawn(ClusterNode.create(offer, this::join));
    }

    private HostedRun join(Path directory, String runId) {
        if (refusedShares > 0) {
            refusedShares--;
            throw new RunRefusedException("the folder is not there");
        }
        var run = new SimHostedRun(this, cluster.files(runId));
        joined = run;
        return run;
    }

    // ---- what goes wrong here -------------------------------------------------------------------

    void refuseShares() {
        refusedShares = 1;
    }

    void refuseDrivers() {
        refusedDrivers = 1;
    }

    void refuseRanks() {
        refusedRanks = 1;
    }

    void refuseNothing() {
        refusedShares = 0;
        refusedDrivers = 0;
        refusedRanks = 0;
    }

    boolean refusesDriver() {
        return refusedDrivers > 0 && refusedDrivers-- > 0;
    }

    boolean refusesRanks() {
        return refusedRanks > 0 && refusedRanks-- > 0;
    }

    // ---- what it is told ------------------------------------------------------------------------

    void hear(ClusterNode.Command command) {
        told(
                () -> {
                    actor.run(command);
                    look(command);
                });
    }

    /** After whatever happens in this process, messages go on their way. */
    void told(Runnable what) {
        what.run();
        for (SimShare share : List.copyOf(shares)) {
            share.takeMail();
        }
        cluster.deliverReports(this);
    }

    private void look(ClusterNode.Command after) {
        for (Effect effect : actor.getAllEffects()) {
            switch (effect) {
                case Effect.SpawnedAnonymous<?> spawned ->
                        open(spawned, (ClusterNode.OpenRun) after);
                case Effect.WatchedWith<?, ?> watch ->
                        shares.getLast().lastWord((ClusterNode.Command) watch.message());
                default -> throw new AssertionError("not simulated: " + effect);
            }
        }
    }

    private void open(Effect.SpawnedAnonymous<?> spawned, ClusterNode.OpenRun order) {
        if (!built.add(new Built(order.runId(), order.owner(), order.order()))) {
            world.violated("%s builds a share twice: %s", this, order);
        }
        long takes = cluster.scenario.slowJoins() ? world.between(0, 20 * World.SECOND) : 0;
        Optional<SimHostedRun> hosted = Optional.ofNullable(joined);
        joined = null;
        ActorRef<NodeRun.Command> ref = spawned.ref().unsafeUpcast();
        shares.add(new SimShare(this, actor.childTestKit(ref), order, hosted, world.now() + takes));
        cluster.delayReports(takes);
    }

    /** Its word comes when the node hears that the actor has stopped. */
    void shareEnded(SimShare share, ClusterNode.@Nullable Command word) {
        shares.remove(share);
        built.removeIf(each -> each.run().equals(share.files.name()));
        if (word != null) {
            after(world.between(0, 200 * World.MILLISECOND), () -> hear(word));
        }
    }

    /** All shares that were not let go, of runs that may have ended. */
    List<SimShare> shares() {
        return shares;
    }

    @Override
    void ended() {
        shares.forEach(SimShare::endWithProcess);
        shares.clear();
    }

    @Override
    void onRemoved(SimMember other) {
        if (other instanceof SimSeed seed) {
            for (SimShare share : List.copyOf(shares)) {
                seed.reports().forEach(share::onGone);
            }
        }
    }
}
