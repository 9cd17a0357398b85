package dev.penstock.actors.simulation;

import dev.penstock.actors.node.HostedRank;
import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.node.TestNodes;
import dev.penstock.actors.rank.RankAssignment;
import dev.penstock.actors.rank.RankCommand;
import dev.penstock.actors.rank.RankEvent;
import dev.penstock.actors.spi.PlanRevision;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.VitalSigns;
import dev.penstock.actors.supervisor.Effect;
import dev.penstock.actors.supervisor.Publication;
import dev.penstock.actors.supervisor.RunCoordinator;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.function.BiFunction;
import java.util.function.Consumer;
import java.util.function.Function;

/**
 * A real {@link RunCoordinator} in a process that may die, with its effects performed in virtual
 * time. What it had sent when it died arrives; what it had not yet done is never done.
 */
final class SimSupervisor {
    private static final long TICK = 200 * World.MILLISECOND;
    private static final int TICKS_TO_ASK_AGAIN = 10;

    /** A rank where it was hosted last, and in which epoch. */
    private record Stage(int epoch, SimRank rank) {}

    /** Messages between these two never overtake one another. */
    private record Line(SimSupervisor from, Object to) {}

    private final Simulation simulation;
    private final World world;
    private final SimClock clock;
    private final RunCoordinator coordinator;
    private final SimProcess process;
    private final Map<Integer, Stage> stages = new HashMap<>();
    private final List<Effect.Publish> publishing = new ArrayList<>();

    /** One object, by which a rank knows whom it obeys. */
    private final Consumer<RankEvent> ears = this::hear;

    private final Set<NodeInfo> left = new HashSet<>();
    private final Set<SimProcess> known = new HashSet<>();
    private int ticks;

    private int effectsToLive = Integer.MAX_VALUE;

    /**
     * @param beginning makes its coordinator, by its clock
     */
    SimSupervisor(Simulation simulation, int pid, Function<SimClock, RunCoordinator> beginning) {
        this.simulation = simulation;
        this.world = simulation.world;
        this.clock = simulation.anyClock();
        this.coordinator = beginning.apply(clock);
        this.process =
                new SimProcess(
                        world,
                        List.of(TestNodes.ofAny("supervisor", pid)),
                        Optional.empty(),
                        clock);
        tick();
    }

    boolean isAlive() {
        return process.isAlive();
    }

    /** On its own clock. */
    long now() {
        return clock.now(world);
    }

    private void tick() {
        hear(it -> it.onTick(now()));
        if (++ticks % TICKS_TO_ASK_AGAIN == 0) {
            simulation.processes.stream()
                    .filter(SimProcess::isAlive)
                    .filter(
                            node ->
                                    !known.contains(node)
                                            || node.nodes.stream().anyMatch(coordinator::isSilent))
                    .forEach(this::ask);
        }
        process.after(clock.until(TICK), this::tick);
    }

    void stopFor(long nanos) {
        process.stopFor(nanos);
    }

    /** At once, or in the middle of what it does next: behind some of its effects. */
    void die(int effects) {
        effectsToLive = effects;
        if (effects == 0) {
            end();
        }
    }

    /** A checkpoint may become complete with the last breath. */
    private void end() {
        world.note("the supervisor dies");
        process.kill();
        publishing.stream()
                .filter(_ -> world.chance(0.3))
                .forEach(each -> simulation.publish(each));
        if (simulation.isCurrent(this)) {
            simulation.supervisorDied();
        }
    }

    // ---- what it hears --------------------------------------------------------------------------

    /** It takes a message, unless it stands still. */
    void hear(BiFunction<RunCoordinator, Long, List<Effect>> input) {
        hear(it -> input.apply(it, now()));
    }

    private void hear(Function<RunCoordinator, List<Effect>> input) {
        process.after(
                0,
                () -> {
                    if (simulation.outcome() == null) {
                        perform(input.apply(coordinator));
                    }
                });
    }

    private void hear(RankEvent event) {
        if (!(event instanceof RankEvent.Lease)) {
            world.note("heard %s", event instanceof RankEvent.StepDone done ? told(done) : event);
        }
        hear(
                it -> {
                    if (simulation.isCurrent(this)) {
                        simulation.checks.heard(event);
                    }
                    return it.onRankEvent(event, now());
                });
    }

    /** Without its arrays, whose text differs from run to run. */
    private static String told(RankEvent.StepDone done) {
        return "StepDone[rank=%d, epoch=%d, step=%d]"
                .formatted(done.rank(), done.epoch(), done.step());
    }

    // ---- what it does ---------------------------------------------------------------------------

    private void perform(List<Effect> effects) {
        for (Effect effect : effects) {
            if (effectsToLive-- == 0) {
                end();
            }
            if (!process.isAlive()) {
                return;
            }
            if (effect instanceof Effect.Journal && !simulation.isCurrent(this)) {
                world.note("a former supervisor ends: its journal is another's");
                process.kill();
                return;
            }
            perform(effect);
        }
    }

    private void perform(Effect effect) {
        if (!(effect instanceof Effect.Notify)) {
            world.note("does %s", effect);
        }
        switch (effect) {
            case Effect.HostRank(NodeInfo node, RankAssignment birth) -> host(node, birth);
            case Effect.Dismiss(NodeInfo node, HostedRank stray, RankCommand.Stop order) ->
                    dismiss(simulation.process(node), stray, order);
            case Effect.Leave(NodeInfo node) -> leave(node);
            case Effect.TellRank(int rank, RankCommand order) -> tell(rank, order);
            case Effect.Journal(var entries) -> entries.forEach(simulation::journal);
            case Effect.StartProcess(var rank) -> {
                boolean waits =
                        simulation.scenario.policy().rebalanceAfter().isPresent()
                                && world.chance(0.5);
                startProcess(rank, waits ? 5 : 0);
            }
            case Effect.AskRoom(var nodes) -> askRoom(nodes);
            case Effect.ReadVitals(Set<NodeInfo> nodes) -> readVitals(nodes);
            case Effect.AskPlan(var now, var absent) -> makePlan(now, absent);
            case Effect.RestartLink _ ->
                    world.after(world.between(0, World.SECOND), simulation::restartDriver);
            case Effect.Publish publish -> publish(publish);
            case Effect.Abandon(long step, int epoch) -> simulation.disk.abandon(step, epoch);
            case Effect.FindOlder(long damaged) ->
                    process.after(
                            world.between(0, 20 * World.MILLISECOND),
                            () -> {
                                OptionalLong older = simulation.disk.newestBefore(damaged);
                                hear(it -> it.onOlder(older, now()));
                            });
            case Effect.Notify(var call) -> {
                if (simulation.isCurrent(this)) {
                    call.accept(simulation.checks);
                }
            }
            case Effect.Finish(RunOutcome end) -> finish(end);
        }
    }

    /** Of one that was replaced, nobody else hears. */
    private void finish(RunOutcome end) {
        if (simulation.isCurrent(this)) {
            simulation.end(end);
        } else {
            world.note("a former supervisor ends: %s", end);
            process.kill();
        }
    }

    private void tell(int rank, RankCommand order) {
        SimRank to = Objects.requireNonNull(stages.get(rank)).rank();
        if (simulation.isCurrent(this)) {
            simulation.checks.told(to, order);
        } else if (order instanceof RankCommand.Commit) {
            world.violated("a former supervisor commits: %s", order);
        }
        to.process.receive(
                new Line(this, to),
                () -> {
                    boolean follows = order.epoch() >= to.epoch();
                    to.order(order, ears);
                    if (follows && order instanceof RankCommand.Fence) {
                        Harms.kill(to.process, "fenced", simulation);
                    }
                });
    }

    /** It may take long, and there may be none. */
    private void makePlan(PlanRevision now, Set<Integer> absent) {
        Optional<RunPlan> made =
                world.chance(0.95) ? simulation.without(now, absent) : Optional.empty();
        boolean slow = world.chance(0.1);
        process.after(
                world.between(0, (slow ? 20 : 1) * World.SECOND),
                () -> hear(it -> it.onPlan(absent, made, now())));
    }

    /** For so many half seconds there is no room for it. */
    private void startProcess(Optional<Integer> rank, int without) {
        if (without == 0) {
            world.after(world.between(0, 2 * World.SECOND), () -> simulation.start(rank));
            return;
        }
        process.after(
                World.SECOND / 2,
                () -> {
                    hear(it -> it.onNoRoom("waits for room", now()));
                    startProcess(rank, without - 1);
                });
    }

    private void askRoom(Map<Integer, NodeInfo> nodes) {
        boolean granted = world.chance(0.9);
        if (simulation.isCurrent(this)) {
            simulation.checks.roomGranted(granted);
        }
        process.after(
                world.between(0, 20 * World.MILLISECOND),
                () -> {
                    if (simulation.isCurrent(this)) {
                        simulation.checks.roomGranted(granted); // in another epoch, perhaps
                    }
                    hear(it -> it.onRoom(nodes, granted, now()));
                });
    }

    /** Nothing is known of processes on other hosts. */
    private void readVitals(Set<NodeInfo> nodes) {
        Map<NodeInfo, VitalSigns> signs = new HashMap<>();
        if (simulation.scenario.proofs()) {
            for (NodeInfo node : nodes) {
                simulation.process(node).vitals().ifPresent(seen -> signs.put(node, seen));
            }
        }
        Optional<VitalSigns> own = process.vitals();
        hear(it -> it.onVitals(signs, own, now()));
    }

    private void publish(Effect.Publish publish) {
        publishing.add(publish);
        process.after(
                world.between(0, 100 * World.MILLISECOND),
                () -> {
                    publishing.remove(publish);
                    Optional<String> failure = simulation.publish(publish);
                    var publication = new Publication(publish.step(), publish.bytes(), 0, failure);
                    hear(it -> it.onPublished(publication, now()));
                });
    }

    // ---- nodes ----------------------------------------------------------------------------------

    /** Whoever joins changes the listing, and all that are listed are asked who they are. */
    void introduceAll() {
        simulation.processes.stream().filter(SimProcess::isAlive).forEach(this::ask);
    }

    private void ask(SimProcess node) {
        int epoch = coordinator.epoch();
        node.receive(new Line(this, "node"), () -> introduce(node, epoch));
    }

    private void introduce(SimProcess node, int epoch) {
        if (epoch >= node.epoch) {
            node.epoch = epoch;
            node.supervisor = this;
        }
        introduced(node);
    }

    /** A node says who it is and what it hosts. */
    void introduced(SimProcess node) {
        int epoch = node.epoch;
        for (NodeInfo info : node.nodes) {
            List<SimRank> living =
                    node.ranks.stream()
                            .filter(each -> !each.hasEnded() && each.node.equals(info))
                            .toList();
            if (!left.contains(info)) {
                node.send(
                        new Line(this, "node"),
                        () -> hear(it -> introduced(it, node, info, epoch, living)));
            }
        }
    }

    private List<Effect> introduced(
            RunCoordinator it, SimProcess node, NodeInfo info, int epoch, List<SimRank> living) {
        known.add(node);
        if (epoch > it.epoch()) {
            List<Effect> raised = it.onHigherEpoch(info, epoch, now());
            ask(node);
            return raised;
        }
        List<Effect> effects =
                it.onNode(info, epoch, living.stream().map(SimSupervisor::hosted).toList(), now());
        living.stream()
                .filter(each -> it.has(hosted(each), info))
                .forEach(
                        each -> stages.put(each.birth.rank(), new Stage(each.birth.epoch(), each)));
        return effects;
    }

    private static HostedRank hosted(SimRank rank) {
        return new HostedRank(rank.birth.rank(), rank.birth.epoch());
    }

    private void host(NodeInfo node, RankAssignment birth) {
        SimProcess on = simulation.process(node);
        if (simulation.isCurrent(this)) {
            simulation.checks.placed(on, birth);
        }
        on.receive(new Line(this, "node"), () -> hostHere(on, node, birth));
    }

    private void hostHere(SimProcess on, NodeInfo node, RankAssignment birth) {
        if (birth.epoch() < on.epoch) {
            return;
        }
        var stop = new RankCommand.Stop(birth.epoch());
        on.ranks.stream()
                .filter(each -> !each.hasEnded())
                .filter(each -> each.birth.rank() == birth.rank())
                .filter(each -> each.birth.epoch() < birth.epoch())
                .toList()
                .forEach(former -> former.order(stop, _ -> {}));
        SimRank hosted =
                on.ranks.stream()
                        .filter(each -> !each.hasEnded())
                        .filter(each -> each.birth.rank() == birth.rank())
                        .filter(each -> each.birth.epoch() == birth.epoch())
                        .findFirst()
                        .orElseGet(() -> simulation.open(on, node, birth, ears));
        on.send(new Line(this, "node"), () -> hear(it -> hosted(it, hosted)));
    }

    private List<Effect> hosted(RunCoordinator it, SimRank hosted) {
        RankAssignment birth = hosted.birth;
        stages.merge(
                birth.rank(),
                new Stage(birth.epoch(), hosted),
                (old, young) -> young.epoch() > old.epoch() ? young : old);
        return it.onHosted(birth.rank(), birth.epoch(), now());
    }

    /** Its process ends with it, unless that was for other ranks, too. */
    private void leave(NodeInfo leaving) {
        SimProcess node = simulation.process(leaving);
        left.add(leaving);
        node.receive(
                new Line(this, "node"),
                () -> {
                    if (left.containsAll(node.nodes)) {
                        node.kill();
                        simulation.wire.gone(node);
                    }
                });
    }

    private void dismiss(SimProcess on, HostedRank stray, RankCommand.Stop order) {
        on.receive(
                new Line(this, "node"),
                () ->
                        on.ranks.stream()
                                .filter(each -> !each.hasEnded() && hosted(each).equals(stray))
                                .forEach(each -> each.order(order, _ -> {})));
    }
}
