package dev.penstock.actors.exploration;

import dev.penstock.actors.rank.RankCommand;
import dev.penstock.actors.rank.RankEvent;
import java.util.List;

/**
 * Which of all that may happen next has to be tried, where what is left out comes later all the
 * same, with the same result: a persistent set (Godefroid, 1996).
 *
 * <p>Whatever happens, happens to one process or one supervisor; these share nothing but what is on
 * its way between them, of which one adds at the end while another takes from the front, and the
 * files. So it is enough to try all that may happen to one of them, faults included, if nothing
 * that the others do can give it something else to choose from: if nothing more can come to it
 * where nothing waits for it now. All share how much may still go wrong; a fault that is spent
 * elsewhere first only takes choices away from it, and each of those is tried now.
 */
final class Reduction {
    private final ModelWorld world;

    private Reduction(ModelWorld world) {
        this.world = world;
    }

    /** Enough of all that may happen. */
    static List<Choice> enough(ModelWorld world) {
        var reduction = new Reduction(world);
        for (ModelProcess process : world.processes) {
            if (process.mayMove(world) && reduction.isEnough(process)) {
                return Choices.of(world, process);
            }
        }
        for (ModelSupervisor supervisor : world.supervisors) {
            if (supervisor.mayMove(world) && reduction.isEnough(supervisor)) {
                return Choices.of(world, supervisor);
            }
        }
        return Choices.all(world);
    }

    private boolean isEnough(ModelProcess process) {
        ModelRank rank = process.rank();
        boolean mayYetFinish = rank != null && !rank.mayFinish(world) && mayFinish(rank, process);
        return !mayYetFinish
                && (world.faults().takeOvers() == 0 || isIndifferentToBeingAsked(process))
                && world.supervisors.stream()
                        .allMatch(
                                each ->
                                        !process.orders.get(each.number).isEmpty()
                                                || !maySend(each, process))
                && !(isTwo() && restores(process));
    }

    private boolean isTwo() {
        return world.supervisors.stream().filter(ModelSupervisor::lives).count() > 1;
    }

    /** Whether it may read a file that a supervisor writes. */
    private static boolean restores(ModelProcess process) {
        return process.orders.stream()
                .filter(orders -> !orders.isEmpty())
                .map(List::getFirst)
                .anyMatch(
                        first ->
                                first instanceof Order.Host
                                        || (first instanceof Order.Tell tell
                                                && tell.command() instanceof RankCommand.Resume));
    }

    /**
     * Whether what it says of itself is the same before and after: the first that another
     * supervisor wants of it is that.
     */
    private boolean isIndifferentToBeingAsked(ModelProcess process) {
        return world.faults().deaths() == 0
                && process.orders.stream()
                        .filter(orders -> !orders.isEmpty())
                        .map(List::getFirst)
                        .allMatch(
                                first -> first instanceof Order.Tell tell && !ends(tell.command()));
    }

    private static boolean ends(RankCommand command) {
        return command instanceof RankCommand.Stop || command instanceof RankCommand.Fence;
    }

    /** Whether a supervisor may tell a process something although this does nothing. */
    private boolean maySend(ModelSupervisor supervisor, ModelProcess process) {
        boolean knows =
                supervisor.knows(process) || !process.words.get(supervisor.number).isEmpty();
        return knows && supervisor.lives() && mayHear(supervisor, process);
    }

    /** Of a death one hears only to leave if its journal is another's. */
    private boolean mayHear(ModelSupervisor supervisor, ModelProcess still) {
        return supervisor.mayMove(world)
                || !world.toStart.isEmpty()
                || (world.faults().deaths() > 0 && world.owns(supervisor.number))
                || world.processes.stream()
                        .anyMatch(each -> each != still && maySpeak(each, supervisor));
    }

    /** Whether a process may say something to a supervisor although this does nothing. */
    private boolean maySpeak(ModelProcess process, ModelSupervisor to) {
        if (!process.lives()) {
            return false;
        }
        if (!process.orders.get(to.number).isEmpty()) {
            return true;
        }
        ModelRank rank = process.rank();
        return rank != null
                && rank.supervisor() == to.number
                && (mayFinish(rank, process) || mayBeStopped(process, rank));
    }

    /** Whether a rank may end its pass now, or when the others have begun theirs. */
    private boolean mayFinish(ModelRank rank, ModelProcess in) {
        return rank.trains()
                && (rank.mayFinish(world)
                        || world.processes.stream()
                                .anyMatch(
                                        each ->
                                                each != in
                                                        && !each.orders
                                                                .get(rank.supervisor())
                                                                .isEmpty()));
    }

    /**
     * Whether another supervisor may stop the rank, which would tell its own: only in the same
     * epoch. All other orders of another are answered to that one.
     */
    private boolean mayBeStopped(ModelProcess process, ModelRank rank) {
        return world.supervisors.stream()
                .filter(each -> each.number != rank.supervisor())
                .anyMatch(
                        each ->
                                (each.lives() && each.epoch() <= rank.epoch())
                                        || process.orders.get(each.number).stream()
                                                .anyMatch(order -> stops(order, rank)));
    }

    private static boolean stops(Order order, ModelRank rank) {
        return switch (order) {
            case Order.Ask _, Order.Host _ -> false;
            case Order.Tell(int _, RankCommand command) ->
                    ends(command) && command.epoch() == rank.epoch();
            case Order.Dismiss(var _, RankCommand command) -> command.epoch() == rank.epoch();
        };
    }

    private boolean isEnough(ModelSupervisor supervisor) {
        return world.toStart.isEmpty()
                && world.faults().deaths() == 0
                && (world.owns(supervisor.number) || world.faults().takeOvers() == 0)
                && world.processes.stream()
                        .allMatch(
                                each ->
                                        !each.words.get(supervisor.number).isEmpty()
                                                || !maySpeak(each, supervisor))
                && !(isTwo() && mayUseFiles(supervisor));
    }

    /** Whether it may now write or read a file that another supervisor writes. */
    private boolean mayUseFiles(ModelSupervisor supervisor) {
        return world.processes.stream()
                .map(each -> each.words.get(supervisor.number))
                .filter(words -> !words.isEmpty())
                .map(List::getFirst)
                .anyMatch(
                        first ->
                                first instanceof Word.Event(RankEvent event)
                                        && (event instanceof RankEvent.Saved
                                                || event instanceof RankEvent.Stopped));
    }
}
