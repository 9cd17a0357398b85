package dev.penstock.actors.simulation;

import dev.penstock.actors.fault.FaultInjector;
import dev.penstock.actors.journal.JournalRecord;
import dev.penstock.actors.mirror.MirrorRegistry;
import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.shard.RankBirth;
import dev.penstock.actors.shard.RankEvent;
import dev.penstock.actors.shard.RankOrder;
import dev.penstock.actors.shard.RankResources;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.supervisor.Effect;
import dev.penstock.actors.supervisor.Publication;
import dev.penstock.actors.supervisor.RunCoordinator;
import dev.penstock.cuda.kernels.ReferenceDevice;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * One run of a scenario: a real {@link RunCoordinator} with its effects performed in virtual time.
 */
final class Simulation {
    private static final long TICK = 200 * World.MILLISECOND;

    /** Longer than all deadlines of a run with as many faults as a scenario has. */
    private static final long MOST_TIME = 1_800 * World.SECOND;

    /** A rank where it was hosted last, and in which epoch. */
    private record Stage(int epoch, SimRank rank) {}

    final World world;
    final Scenario scenario;
    final RunPlan plan;
    final SimDisk disk;
    final SimWire wire;
    final SimNan nan;
    final RunChecks checks;
    final List<SimProcess> processes = new ArrayList<>();
    private final Map<SimProcess, MirrorRegistry> mirrors = new HashMap<>();
    private final Map<Integer, Stage> stages = new HashMap<>();
    private final SimProcess supervisor;
    private final RunCoordinator coordinator;
    private @Nullable RunOutcome outcome;
    private int pids = 100;
    private int drivers;

    Simulation(Scenario scenario, long seed, @Nullable Truth truth) {
        this.world = new World(seed);
        this.scenario = scenario;
        this.plan = scenario.plan();
        this.disk = new SimDisk(world, plan.ranks());
        this.wire = new SimWire(world);
        this.nan = new SimNan(scenario);
        this.checks = new RunChecks(this, truth);
        this.supervisor =
                new SimProcess(
                        world, new NodeInfo("supervisor", 1, Optional.empty()), Optional.empty());
        this.coordinator = new RunCoordinator(plan, scenario.policy(), world.now());
        for (int rank = 0; rank < plan.ranks(); rank++) {
            start(Optional.of(rank));
        }
        for (int spare = 0; spare < scenario.spares(); spare++) {
            start(Optional.empty());
        }
        tick();
        scenario.harms()
                .forEach(harm -> world.at(harm.at(), () -> Harms.happen(harm.kind(), this)));
    }

    /** Until the run has ended, and those who should end with it. */
    Simulation run() {
        while (outcome == null && world.now() < MOST_TIME && world.violations().isEmpty()) {
            world.step();
        }
        checks.atTheEnd(outcome);
        return this;
    }

    @Nullable RunOutcome outcome() {
        return outcome;
    }

    // ---- the supervisor -------------------------------------------------------------------------

    private void tick() {
        hear(() -> coordinator.onTick(world.now()));
        supervisor.after(TICK, this::tick);
    }

    /** The supervisor takes a message, unless it stands still. */
    void hear(Supplier<List<Effect>> input) {
        supervisor.after(
                0,
                () -> {
                    if (outcome == null) {
                        input.get().forEach(this::perform);
                    }
                });
    }

    private void hear(RankEvent event) {
        if (!(event instanceof RankEvent.Lease)) {
            world.note("heard %s", event instanceof RankEvent.StepDone done ? told(done) : event);
        }
        hear(
                () -> {
                    checks.heard(event);
                    return coordinator.onRankEvent(event, world.now());
                });
    }

    /** Without its arrays, whose text differs from run to run. */
    private static String told(RankEvent.StepDone done) {
        return "StepDone[rank=%d, epoch=%d, step=%d]"
                .formatted(done.rank(), done.epoch(), done.step());
    }

    void died(SimProcess process, String how) {
        hear(
                () ->
                        coordinator.onProcessDied(
                                process.info.pid(), process.startedFor, how, world.now()));
    }

    void driverDied() {
        hear(() -> coordinator.onLinkDied("killed", world.now()));
    }

    void interrupt() {
        hear(() -> coordinator.onInterrupt(world.now()));
    }

    void stopSupervisorFor(long nanos) {
        supervisor.stopFor(nanos);
    }

    private void perform(Effect effect) {
        if (!(effect instanceof Effect.Notify)) {
            world.note("does %s", effect);
        }
        switch (effect) {
            case Effect.HostRank(NodeInfo node, RankBirth birth) -> host(node, birth);
            case Effect.TellRank(int rank, RankOrder order) -> tell(rank, order);
            case Effect.Journal(JournalRecord entry) -> checks.journalled(entry);
            case Effect.StartProcess(var rank) ->
                    world.after(world.between(0, 2 * World.SECOND), () -> start(rank));
            case Effect.RestartLink _ ->
                    world.after(world.between(0, World.SECOND), this::restartDriver);
            case Effect.Publish publish ->
                    world.after(world.between(0, 100 * World.MILLISECOND), () -> publish(publish));
            case Effect.Abandon(long step) -> disk.abandon(step);
            case Effect.Notify(var call) -> call.accept(checks);
            case Effect.Finish(RunOutcome end) -> outcome = end;
        }
    }

    private void tell(int rank, RankOrder order) {
        SimRank to = Objects.requireNonNull(stages.get(rank)).rank();
        checks.told(to, order);
        to.process.receive(
                to,
                () -> {
                    to.order(order);
                    if (order instanceof RankOrder.Fence) {
                        Harms.kill(to.process, "fenced", this);
                    }
                });
    }

    private void restartDriver() {
        String directory = "driver-" + ++drivers;
        wire.driverStarts(directory);
        hear(() -> coordinator.onLinkRestarted(directory, world.now()));
    }

    private void publish(Effect.Publish publish) {
        Optional<String> failure = Optional.empty();
        try {
            disk.publish(publish.step(), publish.files());
            checks.published(publish.step());
        } catch (IllegalStateException e) {
            failure = Optional.of(String.valueOf(e.getMessage()));
        }
        var publication = new Publication(publish.step(), publish.bytes(), 0, failure);
        hear(() -> coordinator.onPublished(publication, world.now()));
    }

    // ---- processes ------------------------------------------------------------------------------

    private void start(Optional<Integer> rank) {
        int pid = pids++;
        String name = rank.map(r -> "node-" + r).orElse("spare");
        var process = new SimProcess(world, new NodeInfo(name, pid, rank, rank.isEmpty()), rank);
        processes.add(process);
        mirrors.put(process, new MirrorRegistry());
        process.after(world.between(0, 300 * World.MILLISECOND), this::introduceAll);
    }

    /** Whoever joins changes the listing, and all that are listed are asked who they are. */
    private void introduceAll() {
        for (SimProcess process : processes) {
            if (process.isAlive()) {
                process.send("node", () -> hear(() -> introduced(process)));
            }
        }
    }

    private List<Effect> introduced(SimProcess process) {
        return coordinator.onNode(process.info, world.now());
    }

    private void host(NodeInfo node, RankBirth birth) {
        SimProcess process =
                processes.stream().filter(p -> p.info.equals(node)).findFirst().orElseThrow();
        checks.placed(process, birth);
        process.receive("node", () -> hostHere(process, birth));
    }

    private void hostHere(SimProcess process, RankBirth birth) {
        int rank = birth.rank();
        if (process.ranks.stream()
                .anyMatch(r -> r.birth.rank() == rank && r.birth.epoch() == birth.epoch())) {
            world.violated("%s is to host rank %d twice in one epoch", process, rank);
            return;
        }
        var programs = new SimStages(this, SimStages.FRESH);
        var resources =
                new RankResources(
                        plan,
                        _ -> new ReferenceDevice(new SimMemory("rank " + rank)),
                        programs,
                        wire.of(process),
                        disk,
                        FaultInjector.NONE,
                        Objects.requireNonNull(mirrors.get(process)),
                        _ -> {});
        var hosted = new SimRank(world, process, birth, resources, this::hear);
        process.ranks.add(hosted);
        process.send(
                "node",
                () ->
                        hear(
                                () -> {
                                    var stage = new Stage(birth.epoch(), hosted);
                                    stages.merge(
                                            rank,
                                            stage,
                                            (old, young) ->
                                                    young.epoch() > old.epoch() ? young : old);
                                    return coordinator.onHosted(rank, birth.epoch(), world.now());
                                }));
    }
}
