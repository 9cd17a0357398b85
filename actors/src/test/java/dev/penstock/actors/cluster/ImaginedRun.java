package dev.penstock.actors.cluster;

import dev.penstock.actors.journal.JournalRecord;
import dev.penstock.actors.journal.JournalledRun;
import dev.penstock.actors.spi.ProcessSupply;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.StepTokens;
import dev.penstock.actors.supervisor.RunBeginning;
import dev.penstock.actors.supervisor.SupervisorServices;
import dev.penstock.actors.supervisor.TestPlans;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** A run without files, each of whose ranks holds a GiB. */
class ImaginedRun implements ClusterRun {
    static final long GIB = 1L << 30;
    static final long COMPLETED = 4;

    private final String name;
    private final RunPlan plan;
    private final RunBeginning beginning;
    private Optional<Integer> ranksPerNode = Optional.empty();
    private boolean spreads;

    ImaginedRun(String name, int ranks) {
        this.name = name;
        this.plan = TestPlans.chain(ranks);
        this.beginning = RunBeginning.FIRST;
    }

    /** A run whose seed is gone after step 4; its journal says where these ranks were. */
    ImaginedRun(String name, int ranks, Map<Integer, String> placed) {
        this.name = name;
        this.plan = TestPlans.chain(ranks);
        List<JournalRecord> journal = new ArrayList<>();
        journal.add(new JournalRecord.Began(plan.runId(), plan.hash(), ranks, 1, 0));
        placed.forEach((rank, process) -> journal.add(new JournalRecord.Placed(rank, process)));
        journal.add(new JournalRecord.Committed(1, COMPLETED, 1, 3, 1));
        this.beginning = new RunBeginning.TakenUp(JournalledRun.of(journal).orElseThrow(), true);
    }

    ImaginedRun(String name, RunPlan plan, RunBeginning beginning) {
        this.name = name;
        this.plan = plan;
        this.beginning = beginning;
    }

    ImaginedRun atMostOnANode(int ranks) {
        ranksPerNode = Optional.of(ranks);
        return this;
    }

    ImaginedRun spreading() {
        spreads = true;
        return this;
    }

    @Override
    public boolean spreads() {
        return spreads;
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public Path directory() {
        return Path.of("/runs", name);
    }

    @Override
    public RunPlan plan() {
        return plan;
    }

    @Override
    public List<Long> plannedBytes(List<Integer> homes) {
        return homes.stream().map(_ -> GIB).toList();
    }

    @Override
    public Optional<Integer> ranksPerNode() {
        return ranksPerNode;
    }

    @Override
    public List<String> banner() {
        return List.of();
    }

    @Override
    public StepTokens tokens() {
        throw new UnsupportedOperationException("nobody follows it");
    }

    @Override
    public RunListener listener(RunListener next) {
        return next;
    }

    @Override
    public boolean crossesHosts() {
        return true;
    }

    @Override
    public RunBeginning beginning() {
        return beginning;
    }

    @Override
    public SupervisorServices services(ProcessSupply processes) {
        throw new UnsupportedOperationException("nobody supervises it");
    }

    @Override
    public String finish(RunOutcome outcome, Duration took) {
        return "";
    }

    @Override
    public void close() {}
}
