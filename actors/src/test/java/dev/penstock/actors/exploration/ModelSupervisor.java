package dev.penstock.actors.exploration;

import dev.penstock.actors.node.HostedRank;
import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.rank.RankActivity;
import dev.penstock.actors.rank.RankAssignment;
import dev.penstock.actors.rank.RankCommand;
import dev.penstock.actors.rank.RankEvent;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.actors.supervisor.Effect;
import dev.penstock.actors.supervisor.Publication;
import dev.penstock.actors.supervisor.RunCoordinator;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/** A supervisor: the real coordinator, and around it what {@code PipelineSupervisor} does. */
final class ModelSupervisor {
    private static final RunListener NOBODY = new RunListener() {};

    /** Where a supervisor tells a rank what to do. */
    private record Stage(int process, int birth) {}

    private final int number;
    final RunCoordinator coordinator;

    /** By rank, the process that had it when this one took the run up. */
    private final Map<Integer, String> placed;

    private final Map<Integer, Stage> stages = new TreeMap<>();
    private final Set<Integer> known = new TreeSet<>();

    /** Processes of whose death it has not heard. */
    final List<Integer> deaths = new ArrayList<>();

    private final Set<Integer> heardDead = new TreeSet<>();
    final List<Publication> published = new ArrayList<>();
    private boolean lives = true;

    ModelSupervisor(int number, RunCoordinator coordinator, Map<Integer, String> placed) {
        this.number = number;
        this.coordinator = coordinator;
        this.placed = placed;
    }

    boolean lives() {
        return lives;
    }

    /** Whether it hears nothing and does nothing more before time passes. */
    boolean isInert(ModelWorld world) {
        return world.toStart.isEmpty()
                && deaths.isEmpty()
                && published.isEmpty()
                && world.processes.stream()
                        .allMatch(
                                each ->
                                        each.orders.get(number).isEmpty()
                                                && each.words.get(number).isEmpty()
                                                && (each.rank() == null
                                                        || each.rank().supervisor() != number));
    }

    // ---- what it hears --------------------------------------------------------------------------

    void ask(ModelProcess process) {
        if (lives && process.lives()) {
            process.orders.get(number).add(new Order.Ask(coordinator.epoch()));
        }
    }

    void takeWord(ModelWorld world, ModelProcess process) {
        switch (process.words.get(number).removeFirst()) {
            case Word.Introduction(int epoch, var hosted) -> onIntro(world, process, epoch, hosted);
            case Word.Hosted(int rank, int birth) -> {
                stages.merge(
                        rank,
                        new Stage(process.number, birth),
                        (old, young) -> young.birth() > old.birth() ? young : old);
                perform(world, coordinator.onHosted(rank, birth, world.now()));
            }
            case Word.Event(RankEvent event) ->
                    perform(world, coordinator.onRankEvent(event, world.now()));
        }
    }

    private void onIntro(
            ModelWorld world, ModelProcess process, int epoch, List<HostedRank> hosted) {
        if (heardDead.contains(process.number)) {
            return; // its last words
        }
        known.add(process.number);
        if (epoch > coordinator.epoch()) {
            perform(world, coordinator.onHigherEpoch(process.info, epoch, world.now()));
            ask(process);
            return;
        }
        if (epoch < coordinator.epoch()) {
            ask(process);
        }
        List<Effect> effects = coordinator.onNode(process.info, epoch, hosted, world.now());
        hosted.stream()
                .filter(each -> coordinator.has(each, process.info))
                .forEach(
                        each ->
                                stages.put(
                                        each.rank(), new Stage(process.number, each.birthEpoch())));
        perform(world, effects);
    }

    void hearDeath(ModelWorld world, int which) {
        ModelProcess dead = world.processes.get(deaths.remove(which));
        String process = dead.info.process();
        heardDead.add(dead.number);
        perform(world, coordinator.onNodeDied(process, false, "killed", world.now()));
        int rank = dead.info.rank().orElseThrow();
        if (process.equals(placed.get(rank))) {
            perform(world, coordinator.onNowhere(rank, world.now()));
        }
    }

    void hearPublished(ModelWorld world) {
        perform(world, coordinator.onPublished(published.removeFirst(), world.now()));
    }

    // ---- what it does ---------------------------------------------------------------------------

    private void perform(ModelWorld world, List<Effect> effects) {
        for (Effect effect : effects) {
            if (effect instanceof Effect.Journal && !world.owns(number)) {
                lives = false; // its journal is another's
            }
            if (!lives) {
                return;
            }
            perform(world, effect);
        }
    }

    private void perform(ModelWorld world, Effect effect) {
        switch (effect) {
            case Effect.Journal(var entries) -> world.write(entries);
            case Effect.HostRank(NodeInfo node, RankAssignment birth) ->
                    orders(world, node).add(new Order.Host(birth));
            case Effect.TellRank(int rank, RankCommand command) -> {
                Stage stage = stages.get(rank);
                world.require(stage != null, "rank %d is told %s and lives nowhere", rank, command);
                if (stage != null && world.processes.get(stage.process()).lives()) {
                    world.processes
                            .get(stage.process())
                            .orders
                            .get(number)
                            .add(new Order.Tell(stage.birth(), command));
                }
            }
            case Effect.Dismiss(NodeInfo node, HostedRank stray, RankCommand.Stop command) ->
                    orders(world, node).add(new Order.Dismiss(stray, command));
            case Effect.StartProcess(Optional<Integer> rank) -> rank.ifPresent(world.toStart::add);
            case Effect.Publish publish -> {
                world.files.publish(world, publish);
                published.add(
                        new Publication(publish.step(), publish.bytes(), 0, Optional.empty()));
            }
            case Effect.Abandon(long step, int epoch) -> world.files.abandon(step, epoch);
            case Effect.Notify(var call) -> call.accept(NOBODY);
            case Effect.Finish(RunOutcome end) -> {
                lives = false;
                if (world.owns(number)) {
                    world.end(end);
                }
            }
            case Effect.ReadVitals _ -> {}
            case Effect.Leave _, Effect.AskRoom _, Effect.RestartLink _, Effect.FindOlder _ ->
                    throw new IllegalStateException("not in this world: " + effect);
        }
    }

    private List<Order> orders(ModelWorld world, NodeInfo node) {
        return world.processes.get(ModelProcess.numberOf(node)).orders.get(number);
    }

    // ---- time -----------------------------------------------------------------------------------

    void onTick(ModelWorld world, boolean asksAgain) {
        if (!lives) {
            return;
        }
        perform(world, coordinator.onTick(world.now()));
        if (asksAgain) {
            for (ModelProcess process : world.processes) {
                if (!known.contains(process.number) || coordinator.isSilent(process.info)) {
                    ask(process);
                }
            }
        }
    }

    /**
     * @param stillNanos since the rank moved last
     */
    void renewLease(ModelWorld world, ModelRank rank, long stillNanos) {
        if (lives) {
            var activity =
                    new RankActivity(
                            RankActivity.State.IDLE, StepKind.TRAIN, 0, 0, stillNanos, "waits");
            perform(
                    world,
                    coordinator.onRankEvent(
                            new RankEvent.Lease(rank.rank, rank.epoch(), activity), world.now()));
        }
    }
}
