package dev.penstock.actors.simulation;

import java.util.List;

/** Makes things go wrong. */
final class Harms {
    private Harms() {}

    static void happen(Scenario.Kind kind, Simulation simulation) {
        World world = simulation.world;
        List<SimProcess> alive = simulation.processes.stream().filter(SimProcess::isAlive).toList();
        if (alive.isEmpty()) {
            return;
        }
        SimProcess victim = world.one(alive);
        world.note("HARM %s, victim if any: %s", kind, victim);
        if (simulation.scenario.wired() && world.chance(0.5)) {
            simulation.revisePlan();
        }
        switch (kind) {
            case KILL -> kill(victim, "kill -9", simulation);
            case KILL_TWO -> {
                kill(victim, "kill -9", simulation);
                kill(world.one(alive), "kill -9", simulation);
            }
            case SHORT_STOP -> victim.stopFor(world.between(0, 2 * World.SECOND));
            case LONG_STOP -> victim.stopFor(world.between(3, 20) * World.SECOND);
            case STARVED -> victim.starveFor(world.between(0, 20) * World.SECOND);
            case SHORT_CUT -> victim.cutOffFor(world.between(0, 2 * World.SECOND));
            case LONG_CUT -> victim.cutOffFor(world.between(3, 20) * World.SECOND);
            case CUT_MOST -> {
                long nanos = world.between(3, 20) * World.SECOND;
                alive.stream().filter(p -> p != victim).forEach(p -> p.cutOffFor(nanos));
            }
            case LOST_MESSAGES -> victim.loseMessagesFor(world.between(0, 50 * World.MILLISECOND));
            case LINK_LOST -> simulation.wire.breakLinksOf(victim);
            case DRIVER_DEATH -> {
                if (simulation.scenario.hosts() > 0) { // dies with its process alone
                    simulation.wire.breakLinksOf(victim);
                    return;
                }
                simulation.wire.driverDies();
                world.after(world.between(0, 100 * World.MILLISECOND), simulation::driverDied);
            }
            case SUPERVISOR_STOP ->
                    simulation.stopSupervisorFor(world.between(0, 10) * World.SECOND);
            case SUPERVISOR_DEATH -> simulation.killSupervisor();
            case SUPERVISOR_AND_RANK_DEATH -> {
                kill(victim, "kill -9", simulation);
                simulation.killSupervisor();
            }
            case SECOND_SUPERVISOR -> simulation.takeUpBesideSupervisor();
            case DISK_FULL -> simulation.disk.fillUp();
            case TORN_CHECKPOINT -> simulation.disk.tear();
            case LOST_JOURNAL_END -> simulation.killSupervisor();
            case DAMAGED_CHECKPOINT -> simulation.disk.damage();
            case STUCK -> victim.ranks.forEach(SimRank::getStuck);
            case OLD_ORDERS -> {
                for (int i = 0; i < 20; i++) {
                    world.after(
                            world.between(0, 2 * World.SECOND), simulation.checks::tellAnOldOrder);
                }
            }
            case MOVE -> {
                simulation.moveSomeRanks();
                if (world.chance(0.5)) {
                    simulation.revisePlan();
                }
            }
            case INTERRUPT -> simulation.interrupt();
        }
    }

    static void kill(SimProcess victim, String how, Simulation simulation) {
        if (!victim.isAlive()) {
            return;
        }
        World world = simulation.world;
        world.note("%s ends: %s", victim, how);
        victim.kill();
        simulation.wire.gone(victim);
        if (simulation.scenario.proofs()) {
            world.after(
                    world.between(0, 50 * World.MILLISECOND), () -> simulation.died(victim, how));
        }
    }
}
