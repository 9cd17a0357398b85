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

    final int number;
    private final Shared<RunCoordinator> coordinator;

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
        this.coordinator = new Shared<>(coordinator);
        this.placed = placed;
    }

    boolean lives() {
        return lives;
    }

    int epoch() {
        return coordinator.look().epoch();
    }

    /** Whether it may hear something now. */
    boolean mayMove(ModelWorld world) {
        return lives
                && !(deaths.isEmpty()
                        && published.isEmpty()
                        && world.processes.stream()
                                .allMatch(each -> each.words.get(number).isEmpty()));
    }

    /** Whether it has heard of a process. */
    boolean knows(ModelProcess process) {
        return known.contains(process.number)
                || stages.values().stream().anyMatch(each -> each.process() == process.number);
    }

    // ---- what it hears --------------------------------------------------------------------------

    void ask(ModelProcess process) {
        if (lives && process.lives()) {
            process.orders.get(number).add(new Order.Ask(coordinator.look().epoch()));
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
                perform(world, coordinator.change().onHosted(rank, birth, world.now()));
            }
            case Word.Event(RankEvent event) ->
                    perform(world, coordinator.change().onRankEvent(event, world.now()));
        }
    }

    private void onIntro(
            ModelWorld world, ModelProcess process, int epoch, List<HostedRank> hosted) {
        if (heardDead.contains(process.number)) {
            return; // its last words
        }
        known.add(process.number);
        if (epoch > coordinator.look().epoch()) {
            perform(world, coordinator.change().onHigherEpoch(process.info, epoch, world.now()));
            ask(process);
            return;
        }
        if (epoch < coordinator.look().epoch()) {
            ask(process);
        }
        List<Effect> effects =
                coordinator.change().onNode(process.info, epoch, hosted, world.now());
        hosted.stream()
                .filter(each -> coordinator.look().has(each, process.info))
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
        perform(world, coordinator.change().onNodeDied(process, false, "killed", world.now()));
        int rank = dead.info.rank().orElseThrow();
        if (process.equals(placed.get(rank))) {
            perform(world, coordinator.change().onNowhere(rank, world.now()));
        }
    }

    void hearPublished(ModelWorld world) {
        perform(world, coordinator.change().onPublished(published.removeFirst(), world.now()));
    }

    // ---- what it does ---------------------------------------------------------------------------

    private void perform(ModelWorld world, List<Effect> effects) {
        if (coordinator.look().epoch() > ModelWorld.LAST_EPOCH) {
            leaves(world);
            world.reachesBound();
        }
        for (Effect effect : effects) {
            if (effect instanceof Effect.Journal) {
                world.takeUpBeforeARecord();
                if (!world.owns(number)) {
                    leaves(world); // its journal is another's
                }
            }
            if (!lives) {
                return;
            }
            perform(world, effect);
        }
    }

    /** Nobody hears what is said to it any more. */
    private void leaves(ModelWorld world) {
        lives = false;
        deaths.clear();
        published.clear();
        world.processes.forEach(each -> each.words.get(number).clear());
    }

    private void perform(ModelWorld world, Effect effect) {
        switch (effect) {
            case Effect.Journal(var entries) -> world.write(entries);
            case Effect.HostRank(NodeInfo node, RankAssignment birth) ->
                    order(world, ModelProcess.numberOf(node), new Order.Host(birth));
            case Effect.TellRank(int rank, RankCommand command) -> {
                Stage stage = stages.get(rank);
                world.require(stage != null, "rank %d is told %s and lives nowhere", rank, command);
                if (stage != null) {
                    world.tells(command);
                    order(world, stage.process(), new Order.Tell(stage.birth(), command));
                }
            }
            case Effect.Dismiss(NodeInfo node, HostedRank stray, RankCommand.Stop command) ->
                    order(world, ModelProcess.numberOf(node), new Order.Dismiss(stray, command));
            case Effect.StartProcess(Optional<Integer> rank) -> rank.ifPresent(world.toStart::add);
            case Effect.Publish publish -> {
                world.publish(publish);
                published.add(
                        new Publication(publish.step(), publish.bytes(), 0, Optional.empty()));
            }
            case Effect.Abandon abandon -> world.abandon(abandon);
            case Effect.Notify(var call) -> call.accept(NOBODY);
            case Effect.Finish(RunOutcome end) -> {
                leaves(world);
                if (world.owns(number)) {
                    world.end(end);
                }
            }
            case Effect.ReadVitals _ -> {}
            case Effect.Leave _,
                    Effect.AskRoom _,
                    Effect.AskPlan _,
                    Effect.RestartLink _,
                    Effect.FindOlder _ ->
                    throw new IllegalStateException("not in this world: " + effect);
        }
    }

    private void order(ModelWorld world, int to, Order order) {
        ModelProcess process = world.processes.get(to);
        if (process.lives()) {
            process.orders.get(number).add(order);
        }
    }

    // ---- time -----------------------------------------------------------------------------------

    void onTick(ModelWorld world, boolean asksAgain) {
        if (!lives) {
            return;
        }
        perform(world, coordinator.change().onTick(world.now()));
        if (asksAgain) {
            for (ModelProcess process : world.processes) {
                if (!known.contains(process.number) || coordinator.look().isSilent(process.info)) {
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
                    coordinator
                            .change()
                            .onRankEvent(
                                    new RankEvent.Lease(rank.rank, rank.epoch(), activity),
                                    world.now()));
        }
    }
}
