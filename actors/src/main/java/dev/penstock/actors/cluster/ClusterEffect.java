package dev.penstock.actors.cluster;

import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.supervisor.PipelineSupervisor;
import java.time.Duration;
import java.util.List;
import java.util.Optional;

/**
 * What a {@link ClusterCoordinator} wants done for a run. Its caller performs effects in the order
 * of their list. A {@code node} is an address; one that is gone is told nothing.
 */
sealed interface ClusterEffect {
    /** The run's name. */
    String run();

    /** Ask a node whether it kept a share; see {@link ClusterNode.AdoptRun}. */
    record AskForShare(String run, String node) implements ClusterEffect {}

    /** What a node answers with its number, and is told again until it does. */
    sealed interface Order extends ClusterEffect {
        String node();

        /** Of this run's orders; the same each time that it is given. */
        long number();
    }

    /** Have a node build its share; see {@link ClusterNode.OpenRun}. */
    record OpenShare(String run, String node, long number, boolean startsDriver) implements Order {}

    /** See {@link ClusterNode.HostRanks}. */
    record HostRanks(
            String run,
            String node,
            long number,
            List<Integer> ranks,
            String driver,
            Optional<RunKey> key)
            implements Order {
        public HostRanks {
            ranks = List.copyOf(ranks);
        }
    }

    /** See {@link ClusterNode.StartDriver}. */
    record StartDriver(String run, String node, long number) implements Order {}

    /** Have a node let go of the run. */
    record CloseShare(String run, String node) implements ClusterEffect {}

    /** Call {@link ClusterCoordinator#onGathered} when others may have died as well. */
    record Gather(String run) implements ClusterEffect {}

    /** Start the run's supervisor. */
    record Supervise(String run) implements ClusterEffect {}

    /** Tell the run's supervisor. */
    record TellSupervisor(String run, PipelineSupervisor.Command command)
            implements ClusterEffect {}

    /** Tell whoever follows the run. */
    record TellPeople(String run, String line) implements ClusterEffect {}

    /** The run is over; nothing follows. */
    record End(String run, RunOutcome outcome, Duration took) implements ClusterEffect {}
}
