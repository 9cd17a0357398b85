package dev.penstock.actors.cluster;

import dev.penstock.actors.spi.ProcessSupply;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.StepTokens;
import dev.penstock.actors.spi.Timeouts;
import dev.penstock.actors.supervisor.RunBeginning;
import dev.penstock.actors.supervisor.SupervisorServices;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;

/** A run as the seed has it. */
public interface ClusterRun extends AutoCloseable {
    /**
     * What it takes at least until another seed has a run: the split brain resolver's decision, the
     * lease of the run's directory, and one look every few seconds.
     */
    Duration LEAST_PATIENCE = Duration.ofSeconds(90);

    /**
     * For how long nodes keep their shares of a run whose seed is gone: as long as it may take to
     * begin, and as long as it takes another seed to find it.
     */
    static Duration patience(Timeouts timeouts) {
        return timeouts.start().compareTo(LEAST_PATIENCE) > 0 ? timeouts.start() : LEAST_PATIENCE;
    }

    /** Unique in the cluster, for people. */
    String name();

    /** Where its files go; all its nodes see it under this path. */
    Path directory();

    RunPlan plan();

    /**
     * Device memory of each rank. From any thread.
     *
     * @param homes by rank, the lowest rank that lives on the same node
     */
    List<Long> plannedBytes(List<Integer> homes);

    /** Most ranks on one node; empty: as many as fit. */
    Optional<Integer> ranksPerNode();

    /** Whether its ranks go to emptier nodes as soon as such come, whatever a node may have. */
    default boolean spreads() {
        return false;
    }

    /** What a user reads first. */
    List<String> banner();

    /** That the steps train on. */
    StepTokens tokens();

    /**
     * Records the run in its directory; once.
     *
     * @param next told the same, afterwards
     */
    RunListener listener(RunListener next);

    /**
     * Whether its ranks may be on several hosts; otherwise their tensors travel through one host's
     * memory only.
     */
    boolean crossesHosts();

    /** How a supervisor comes to it: it is new, or another seed kept it. */
    RunBeginning beginning();

    /** Steps that were done before whoever keeps it now. */
    default long completed() {
        return beginning() instanceof RunBeginning.TakenUp taken
                ? taken.run().completed()
                : plan().steps().completed();
    }

    /**
     * What its supervisor works with; once.
     *
     * @param processes finds room for ranks that are to be started anew
     */
    SupervisorServices services(ProcessSupply processes);

    /**
     * Writes the report, and into the journal that the run is over, if its supervisor had no chance
     * to. Blocks.
     *
     * @return what a user reads last
     */
    String finish(RunOutcome outcome, Duration took);

    /** Lets go of everything. */
    @Override
    void close();
}
