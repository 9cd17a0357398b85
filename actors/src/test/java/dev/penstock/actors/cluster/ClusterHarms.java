package dev.penstock.actors.cluster;

import dev.penstock.actors.simulation.World;
import java.util.List;

/** Makes things go wrong in a cluster. */
final class ClusterHarms {
    private ClusterHarms() {}

    static void happen(ClusterScenario.Kind kind, ClusterSimulation cluster) {
        World world = cluster.world;
        List<SimClusterNode> nodes = cluster.livingNodes();
        List<SimSeed> seeds = cluster.livingSeeds();
        if (nodes.isEmpty() || seeds.isEmpty()) {
            return;
        }
        SimClusterNode node = world.one(nodes);
        SimSeed seed = world.chance(0.7) ? seeds.getFirst() : world.one(seeds);
        List<SimSeed> keepers = cluster.keepers();
        world.note("HARM %s, victim if any: %s or %s", kind, node, seed);
        switch (kind) {
            case KILL_NODE -> node.kill();
            case KILL_SEED -> seed.kill();
            case PAUSE_NODE -> pause(node, cluster);
            case PAUSE_SEED -> pause(seed, cluster);
            case CUT_NODE -> cut(node, cluster);
            case CUT_SEED -> cut(seed, cluster);
            case LOST_MESSAGES_OF_NODE -> node.loseMessagesFor(world.between(0, 4 * World.SECOND));
            case LOST_MESSAGES_OF_SEED -> seed.loseMessagesFor(world.between(0, 4 * World.SECOND));
            case ALL_MESSAGES_LOST -> {
                long nanos = world.between(0, 2 * World.SECOND);
                nodes.forEach(each -> each.loseMessagesFor(nanos));
            }
            case FALSE_DEATH ->
                    keepers.forEach(keeper -> keeper.after(0, () -> keeper.onLeft(node)));
            case LATE_LAST_WORDS -> cluster.sayLateWhoIsThere(node);
            case DRIVER_DEATH -> {
                for (SimClusterNode each : nodes) {
                    if (each.shares().stream().anyMatch(share -> share.driverDies("kill -9"))) {
                        break;
                    }
                }
            }
            case NO_DRIVER -> node.refuseDrivers();
            case SHARE_REFUSED -> node.refuseShares();
            case RANKS_REFUSED -> node.refuseRanks();
            case RANK_ENDS ->
                    node.shares().stream()
                            .flatMap(share -> share.hosts.stream())
                            .findFirst()
                            .ifPresent(host -> host.births.clear());
            case REBALANCE ->
                    keepers.forEach(
                            keeper ->
                                    cluster.allFiles().stream()
                                            .filter(run -> keeper.has(run.name()))
                                            .forEach(
                                                    run ->
                                                            keeper.after(
                                                                    0,
                                                                    () ->
                                                                            keeper.rebalance(
                                                                                    run.name()))));
        }
    }

    private static void pause(SimMember victim, ClusterSimulation cluster) {
        victim.pauseFor(length(cluster.world));
        cluster.watchSilence(victim);
    }

    private static void cut(SimMember victim, ClusterSimulation cluster) {
        victim.cutOffFor(length(cluster.world), cluster.world.chance(0.5));
        cluster.watchSilence(victim);
    }

    /** Short ones go unnoticed; long ones outlast the cluster's patience. */
    private static long length(World world) {
        return world.chance(0.5)
                ? world.between(0, 10 * World.SECOND)
                : world.between(10, 45) * World.SECOND;
    }
}
