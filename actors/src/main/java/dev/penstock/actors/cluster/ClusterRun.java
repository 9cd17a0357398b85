package dev.penstock.actors.cluster;

import dev.penstock.actors.spi.ProcessSupply;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.StepTokens;
import dev.penstock.actors.supervisor.RunBeginning;
import dev.penstock.actors.supervisor.SupervisorServices;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;

/** A run as the seed has it. */
public interface ClusterRun extends AutoCloseable {
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

    /**
     * What its supervisor works with; once.
     *
     * @param processes finds room for ranks that are to be started anew
     */
    SupervisorServices services(ProcessSupply processes);

    /**
     * Writes the report. Blocks.
     *
     * @return what a user reads last
     */
    String finish(RunOutcome outcome, Duration took);

    /** Lets go of everything. */
    @Override
    void close();
}
