package dev.penstock.actors.simulation;

import dev.penstock.actors.collective.CollectiveLibrary;
import dev.penstock.actors.collective.shared.CollectiveRegistry;
import dev.penstock.actors.dataplane.PeerAddress;
import dev.penstock.actors.dataplane.direct.TransferRegistry;
import dev.penstock.actors.fault.FaultInjector;
import dev.penstock.actors.journal.JournalRecord;
import dev.penstock.actors.journal.JournalledRun;
import dev.penstock.actors.mirror.MirrorRegistry;
import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.rank.RankAssignment;
import dev.penstock.actors.rank.RankEvent;
import dev.penstock.actors.rank.RankResources;
import dev.penstock.actors.spi.DeviceFailureListener;
import dev.penstock.actors.spi.PlanRevision;
import dev.penstock.actors.spi.PlanRevisions;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.supervisor.Effect;
import dev.penstock.actors.supervisor.TestCoordinators;
import dev.penstock.cuda.kernels.ReferenceDevice;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/** One run of a scenario: its processes, its disk, its wire, and whoever supervises it. */
final class Simulation {
    /** Longer than all deadlines of a run with as many faults as a scenario has. */
    private static final long MOST_TIME = 1_800 * World.SECOND;

    final World world;
    final Scenario scenario;
    final RunPlan plan;
    final SimDisk disk;
    final SimWire wire;
    final SimNan nan;
    final RunChecks checks;
    final List<SimProcess> processes = new ArrayList<>();
    private final Map<SimProcess, MirrorRegistry> mirrors = new HashMap<>();
    private final Map<SimProcess, CollectiveRegistry> meetings = new HashMap<>();
    private final List<JournalRecord> journal = new ArrayList<>();
    private SimSupervisor supervisor;
    private @Nullable RunOutcome outcome;
    private int pids = 100;
    private int drivers;
    private int revisions;

    /** What goes wrong when a rank next waits for an exchange. */
    private final List<Scenario.Kind> harmsOfExchanges = new ArrayList<>();

    private final Map<PlanRevision, RunPlan> plans = new HashMap<>();

    Simulation(Scenario scenario, long seed, @Nullable Truth truth) {
        this.world = new World(seed);
        this.scenario = scenario;
        this.plan = scenario.plan();
        this.disk = new SimDisk(world, scenario);
        this.wire = new SimWire(world, scenario);
        this.nan = new SimNan(scenario);
        this.checks = new RunChecks(this, truth);
        this.supervisor =
                new SimSupervisor(
                        this,
                        1,
                        clock ->
                                TestCoordinators.begin(
                                        plan,
                                        scenario.policy(),
                                        clock.worldClockMs(world),
                                        clock.now(world)));
        int first = (plan.ranks() + scenario.together() - 1) / scenario.together();
        for (int process = 0; process < first; process++) {
            int begin = process;
            start(
                    IntStream.range(0, plan.ranks())
                            .filter(r -> r % first == begin)
                            .boxed()
                            .toList());
        }
        for (int spare = 0; spare < scenario.spares(); spare++) {
            start(Optional.empty());
        }
        for (int i = 0; i < scenario.harms().size(); i++) {
            Scenario.Harm harm = scenario.harms().get(i);
            boolean waits = scenario.every() > 0 && i % 2 == 0;
            world.at(
                    harm.at(),
                    waits
                            ? () -> harmsOfExchanges.add(harm.kind())
                            : () -> Harms.happen(harm.kind(), this));
        }
        if (scenario.proofs()) {
            world.after(World.SECOND, this::lookWhoIsNowhere);
        }
    }

    /** A rank waits for an exchange: now is when some harms do most. */
    void strikeExchange() {
        for (Scenario.Kind kind : harmsOfExchanges) {
            world.after(world.between(0, World.MILLISECOND), () -> Harms.happen(kind, this));
        }
        harmsOfExchanges.clear();
    }

    /** Until the run has ended, and those who should end with it. */
    Simulation run() {
        if (scenario.waitsInStages()) {
            Fibre.within(this::runAll);
        } else {
            runAll();
        }
        return this;
    }

    private void runAll() {
        while (outcome == null && world.now() < MOST_TIME && world.violations().isEmpty()) {
            world.step();
        }
        checks.atTheEnd(outcome);
        processes.forEach(process -> process.ranks.forEach(SimRank::endFibre));
    }

    @Nullable RunOutcome outcome() {
        return outcome;
    }

    void end(RunOutcome end) {
        outcome = end;
    }

    SimClock anyClock() {
        return scenario.skewed() ? SimClock.any(world) : SimClock.right();
    }

    // ---- the supervisor -------------------------------------------------------------------------

    /** Whether this one has the journal that the next supervisor reads. */
    boolean isCurrent(SimSupervisor one) {
        return one == supervisor;
    }

    void journal(JournalRecord entry) {
        journal.add(entry);
        checks.journalled(entry);
    }

    void died(SimProcess process, String how) {
        NodeInfo node = process.info();
        supervisor.hear(
                (it, now) ->
                        scenario.hosts() > 0
                                ? it.onNodeDied(node.process(), true, how, now)
                                : it.onProcessDied(node.pid(), process.startedFor, how, now));
    }

    /** The members of a cluster are known, and what they host; whoever is no member is gone. */
    private void lookWhoIsNowhere() {
        for (int rank = 0; rank < plan.ranks(); rank++) {
            int each = rank;
            boolean somewhere =
                    processes.stream()
                            .filter(SimProcess::isAlive)
                            .flatMap(process -> process.ranks.stream())
                            .anyMatch(r -> r.birth.rank() == each && !r.hasEnded());
            if (!somewhere) {
                supervisor.hear((it, now) -> it.onNowhere(each, now));
            }
        }
        world.after(World.SECOND, this::lookWhoIsNowhere);
    }

    void driverDied() {
        supervisor.hear((it, now) -> it.onLinkDied("", "killed", now));
    }

    void interrupt() {
        supervisor.hear((it, now) -> it.onInterrupt(now));
    }

    void moveSomeRanks() {
        var ranks = new TreeSet<Integer>();
        for (int i = 0; i < 1 + world.random.nextInt(2); i++) {
            ranks.add(world.random.nextInt(plan.ranks()));
        }
        supervisor.hear((it, now) -> it.onMove(ranks, now));
    }

    /**
     * A plan of its own with the same order, for which the ranks build their stages anew; of wired
     * replicas, which keep them, for other speeds. The run may have another plan by then.
     */
    void revisePlan() {
        if (scenario.wired()) {
            RunPlan next =
                    scenario.wiredPlans().balanced(checks.revision(), world.random.nextLong());
            world.after(
                    world.chance(0.5) ? 0 : world.between(0, World.SECOND),
                    () -> supervisor.hear((it, now) -> it.onRevise(next, now)));
            return;
        }
        int number = ++revisions;
        var revision =
                new PlanRevision(number, List.of("number=" + number), "hash-" + number, "a test");
        supervisor.hear((it, now) -> it.onRevise(plan.as(revision, plan.hash()), now));
    }

    /** Ranks of another plan than the run's hold nothing of use, and all go back. */
    boolean hasRevisedPlans() {
        return revisions > 0;
    }

    private PlanRevisions.Revised revised(PlanRevision revision) {
        return new PlanRevisions.Revised(planOf(revision), new SimStages(this, SimStages.FRESH));
    }

    /** The plan that a revision says, as every process derives it. */
    private RunPlan planOf(PlanRevision revision) {
        return scenario.wired()
                ? plans.computeIfAbsent(revision, scenario.wiredPlans()::of)
                : plan.as(revision, plan.hash());
    }

    /** The plan without ranks, if there is one. */
    Optional<RunPlan> without(PlanRevision now, Set<Integer> absent) {
        return scenario.wiredPlans().without(now, absent);
    }

    void stopSupervisorFor(long nanos) {
        supervisor.stopFor(nanos);
    }

    void killSupervisor() {
        if (supervisor.isAlive()) {
            supervisor.die(world.chance(0.5) ? 0 : world.random.nextInt(12));
        }
    }

    /** It stands still and is taken for dead; it may go on before another comes, or after. */
    void takeUpBesideSupervisor() {
        SimSupervisor one = supervisor;
        if (!one.isAlive()) {
            return;
        }
        one.stopFor(world.between(0, 20) * World.SECOND);
        world.after(
                world.between(0, 20) * World.SECOND,
                () -> {
                    if (isCurrent(one) && one.isAlive() && outcome == null) {
                        takeUp();
                    }
                });
    }

    /** Another one comes some time later and finds the journal. */
    void supervisorDied() {
        world.after(world.between(0, 10 * World.SECOND), this::takeUp);
    }

    private void takeUp() {
        loseTheJournalsEnd();
        JournalledRun run =
                JournalledRun.of(journal)
                        .map(known -> known.withPublished(disk.newest()))
                        .orElseThrow();
        world.note("takes up %s", run);
        if (run.ending().isPresent()) {
            outcome = outcomeOf(run.ending().get());
            return;
        }
        checks.takenUp(run);
        supervisor =
                new SimSupervisor(
                        this,
                        pids++,
                        clock ->
                                TestCoordinators.takeUp(
                                        run,
                                        planOf(run.revision()),
                                        scenario.policy(),
                                        clock.worldClockMs(world),
                                        clock.now(world)));
        supervisor.introduceAll();
        if (wire.isDown()) {
            driverDied();
        } else {
            String directory = wire.driver();
            supervisor.hear((it, now) -> it.onLinkRestarted("", directory, now));
        }
    }

    /** As on a disk that said too early that it had written. */
    private void loseTheJournalsEnd() {
        if (scenario.has(Scenario.Kind.LOST_JOURNAL_END)) {
            int lost = world.random.nextInt(4);
            for (int i = 0; i < lost && journal.size() > 1; i++) {
                world.note("the journal loses %s", journal.removeLast());
            }
        }
    }

    private RunOutcome outcomeOf(JournalRecord ending) {
        return switch (ending) {
            case JournalRecord.Failed(long step, String reason) ->
                    new RunOutcome.Failed(step, reason);
            case JournalRecord.Ended(long step) when step < scenario.steps() ->
                    new RunOutcome.Interrupted(step);
            case JournalRecord.Ended(long step) -> new RunOutcome.Completed(step);
            default -> throw new IllegalStateException("no ending: " + ending);
        };
    }

    void restartDriver() {
        if (wire.isDown()) {
            wire.driverStarts("driver-" + ++drivers);
        }
        String directory = wire.driver();
        supervisor.hear((it, now) -> it.onLinkRestarted("", directory, now));
    }

    /** Why it could not be published, if it could not. */
    Optional<String> publish(Effect.Publish publish) {
        try {
            disk.publish(publish.step(), publish.epoch(), publish.files());
            checks.published(publish.step());
            return Optional.empty();
        } catch (IllegalStateException e) {
            return Optional.of(String.valueOf(e.getMessage()));
        }
    }

    // ---- processes ------------------------------------------------------------------------------

    SimProcess process(NodeInfo node) {
        return processes.stream().filter(p -> p.nodes.contains(node)).findFirst().orElseThrow();
    }

    void start(Optional<Integer> rank) {
        start(rank.stream().toList());
    }

    /**
     * A process.
     *
     * @param ranks for which it is; none if it is a spare one
     */
    private void start(List<Integer> ranks) {
        int pid = pids++;
        Optional<PeerAddress> address = address(pid);
        List<NodeInfo> nodes = new ArrayList<>();
        for (int rank : ranks) {
            nodes.add(node("node-" + ranks.getFirst(), pid, Optional.of(rank), address));
        }
        if (nodes.isEmpty()) {
            nodes.add(node("spare", pid, Optional.empty(), address));
        }
        var process = new SimProcess(world, nodes, ranks.stream().findFirst(), anyClock());
        processes.add(process);
        mirrors.put(process, new MirrorRegistry());
        meetings.put(process, new CollectiveRegistry());
        process.after(world.between(0, 300 * World.MILLISECOND), () -> supervisor.introduceAll());
    }

    private static NodeInfo node(
            String name, int pid, Optional<Integer> rank, Optional<PeerAddress> address) {
        return new NodeInfo(name, pid, 0, "", rank, rank.isEmpty(), address);
    }

    /** Every process has a media driver of its own, where there are hosts. */
    private Optional<PeerAddress> address(int pid) {
        return scenario.hosts() == 0
                ? Optional.empty()
                : Optional.of(
                        new PeerAddress(
                                "host-" + pid % scenario.hosts(),
                                "driver-of-" + pid,
                                "10.0.0.%d:%d".formatted(pid % scenario.hosts(), pid)));
    }

    SimRank open(
            SimProcess process, NodeInfo node, RankAssignment birth, Consumer<RankEvent> ears) {
        int rank = birth.rank();
        if (process.ranks.stream()
                .anyMatch(r -> r.birth.rank() == rank && r.birth.epoch() == birth.epoch())) {
            world.violated("%s is to host rank %d twice in one epoch", process, rank);
        }
        var resources =
                new RankResources(
                        plan,
                        _ -> new ReferenceDevice(new SimMemory("rank " + rank)),
                        new SimStages(this, SimStages.FRESH),
                        wire.of(process),
                        disk,
                        FaultInjector.NONE,
                        Objects.requireNonNull(mirrors.get(process)),
                        Objects.requireNonNull(meetings.get(process)),
                        CollectiveLibrary.NEVER,
                        new TransferRegistry(true),
                        _ -> {},
                        DeviceFailureListener.NONE,
                        this::revised);
        var hosted = new SimRank(this, process, node, birth, resources, ears, this::ended);
        process.ranks.add(hosted);
        return hosted;
    }

    /** A supervisor that did not host this rank may not hear of its end from itself. */
    private void ended(SimRank rank) {
        SimProcess process = rank.process;
        SimSupervisor last = process.supervisor;
        if (last != null && rank.birth.epoch() < process.epoch) {
            last.introduced(process);
        }
    }
}
