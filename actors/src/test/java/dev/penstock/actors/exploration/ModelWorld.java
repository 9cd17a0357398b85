package dev.penstock.actors.exploration;

import dev.penstock.actors.collective.CollectiveForm;
import dev.penstock.actors.fault.RecoveryPolicy;
import dev.penstock.actors.journal.JournalRecord;
import dev.penstock.actors.journal.JournalledRun;
import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.node.TestNodes;
import dev.penstock.actors.rank.RankCommand;
import dev.penstock.actors.rank.RankEvent;
import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.RunSteps;
import dev.penstock.actors.spi.Timeouts;
import dev.penstock.actors.supervisor.Effect;
import dev.penstock.actors.supervisor.RunCoordinator;
import dev.penstock.actors.supervisor.TestCoordinators;
import dev.penstock.schedules.generate.OneForwardOneBackward;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.lower.Lowering;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * A run of two steps with a rank in each of three processes, its journal, its disk, everything that
 * is on its way, and the supervisors that there are: the first, and one that took the run up while
 * the first may live. Words of one to another do not overtake one another; all else may happen in
 * any order.
 */
final class ModelWorld {
    static final int RANKS = 3;
    static final int STEPS = 2;

    private static final long TICK = 750_000_000L;
    private static final int TICKS_TO_ASK_AGAIN = 3;
    private static final int PATIENCE = 400;
    static final int LAST_EPOCH = 4;

    private static final RunPlan PLAN = plan();

    final List<ModelSupervisor> supervisors = new ArrayList<>();
    final List<ModelProcess> processes = new ArrayList<>();

    /** Ranks for which a process was asked for. */
    final List<Integer> toStart = new ArrayList<>();

    private final Shared<ModelFiles> files = new Shared<>(new ModelFiles());
    private Faults faults;
    private long now;

    /** By epoch and pass, who has begun it, and after what. */
    private final Map<List<Long>, Map<Integer, List<ModelRank.Update>>> begun = new HashMap<>();

    /** By epoch, what ranks held when it began. */
    private final Map<Integer, Map<Integer, RankEvent.HeldState>> held = new TreeMap<>();

    /** By epoch, the supervisor in whose name ranks opened links. */
    private final Map<Integer, Integer> owners = new TreeMap<>();

    /** The newest step that a rank was told to apply and that nobody has gone back behind. */
    private long told;

    /** Whether another supervisor takes the run up before the next record reaches the disk. */
    private boolean awaitsRecord;

    private @Nullable RunOutcome outcome;
    private boolean reachedBound;
    private @Nullable String violation;

    ModelWorld(Faults faults) {
        this.faults = faults;
        for (int rank = 0; rank < RANKS; rank++) {
            addProcess(rank);
        }
        enter(TestCoordinators.begin(PLAN, RecoveryPolicy.DEFAULT, 0), Map.of());
    }

    private ModelProcess addProcess(int rank) {
        int p = processes.size();
        NodeInfo info = TestNodes.of("p" + p, ModelProcess.pid(p), rank);
        processes.add(new ModelProcess(p, info, supervisors.size()));
        return processes.getLast();
    }

    private static RunPlan plan() {
        PipelineShape shape = PipelineShape.of(RANKS, RANKS);
        Schedule order = OneForwardOneBackward.schedule(shape);
        return new RunPlan(
                "run",
                "hash",
                Lowering.lower(order),
                Lowering.lowerForwardOnly(order),
                RankGrid.pipeline(RANKS),
                Map.of(),
                new RunSteps(0, STEPS, 1, 0, 0, 1),
                Timeouts.DEFAULT,
                false,
                true,
                CollectiveForm.NEVER);
    }

    int opsOf(int rank) {
        return PLAN.training().program(rank).ops().size();
    }

    Optional<String> violation() {
        return Optional.ofNullable(violation);
    }

    void require(boolean holds, String what, @Nullable Object... of) {
        if (!holds && violation == null) {
            violation = what.formatted(of);
        }
    }

    long number() {
        return ObjectGraph.numberOf(this, now);
    }

    /** Whether nothing more is to happen. */
    boolean isOver() {
        return (outcome != null || reachedBound) && !somethingIsOnItsWay();
    }

    /** A supervisor would raise the epoch beyond the last that is looked at; it leaves instead. */
    void reachesBound() {
        reachedBound = true;
    }

    // ---- what may happen ------------------------------------------------------------------------

    /** To be looked at only. */
    ModelFiles files() {
        return files.look();
    }

    void publish(Effect.Publish publish) {
        files.change().publish(this, publish);
    }

    void abandon(Effect.Abandon abandon) {
        files.change().abandon(abandon.step(), abandon.epoch());
    }

    Faults faults() {
        return faults;
    }

    long now() {
        return now;
    }

    static char name(int supervisor) {
        return "AB".charAt(supervisor);
    }

    void loses(List<?> messages) {
        messages.removeFirst();
        faults = faults.afterALoss();
    }

    void isKilled(int p) {
        faults = faults.afterADeath();
        processes.get(p).dies(this);
    }

    void isDead(int p) {
        supervisors.stream().filter(ModelSupervisor::lives).forEach(each -> each.deaths.add(p));
    }

    void start(int which) {
        ModelProcess process = addProcess(toStart.remove(which));
        supervisors.forEach(each -> each.ask(process));
    }

    // ---- what ranks do --------------------------------------------------------------------------

    void says(int process, int to, Word word) {
        if (supervisors.get(to).lives()) {
            processes.get(process).words.get(to).add(word);
        }
    }

    void holds(int epoch, RankEvent.HeldState state) {
        held.computeIfAbsent(epoch, _ -> new TreeMap<>()).put(state.rank(), state);
    }

    void opensLinks(ModelRank rank) {
        Integer before = owners.putIfAbsent(rank.epoch(), rank.supervisor());
        require(
                before == null || before == rank.supervisor(),
                "ranks opened links in epoch %d for both supervisors",
                rank.epoch());
    }

    void begins(ModelRank rank, long pass) {
        var all = begun.computeIfAbsent(List.of((long) rank.epoch(), pass), _ -> new TreeMap<>());
        all.put(rank.rank, rank.applied());
        require(all.values().stream().distinct().count() == 1, "ranks train after %s", all);
    }

    boolean haveAllBegun(int epoch, long pass) {
        return begun.getOrDefault(List.of((long) epoch, pass), Map.of()).size() == RANKS;
    }

    void writes(ModelRank rank, long step) {
        require(rank.applied().size() == step, "%s saves step %d", rank, step);
        files.change().writePart(rank, step);
    }

    List<ModelRank.Update> checkpoint(long step) {
        Optional<List<ModelRank.Update>> state = files.look().checkpoint(step);
        require(state.isPresent(), "there is no checkpoint of step %d", step);
        return state.orElse(List.of());
    }

    // ---- supervisors ----------------------------------------------------------------------------

    private void enter(RunCoordinator coordinator, Map<Integer, String> placed) {
        var supervisor = new ModelSupervisor(supervisors.size(), coordinator, placed);
        supervisors.add(supervisor);
        for (ModelProcess process : processes) {
            process.hearsOfASupervisor();
            supervisor.ask(process);
            if (!process.lives()) {
                supervisor.deaths.add(process.number);
            }
        }
        supervisor.onTick(this, false); // with what it said when it began
    }

    /** A supervisor is told to have a rank apply a step. */
    void tells(RankCommand command) {
        if (command instanceof RankCommand.Commit commit) {
            told = Math.max(told, commit.step());
        }
    }

    /**
     * Another supervisor takes the run up while this one does what follows from what it hears: at
     * its next record, or when it has written none.
     */
    void takeUpBeforeTheRecordOf(Choice.Move move) {
        awaitsRecord = true;
        move.happen(this);
        takeUpBeforeARecord();
    }

    /** Has the other supervisor come first if it is to. */
    void takeUpBeforeARecord() {
        if (awaitsRecord) {
            awaitsRecord = false;
            if (files.look().run(0).filter(run -> run.ending().isEmpty()).isPresent()) {
                takeUp(0);
            }
        }
    }

    void takeUp(int lost) {
        faults = faults.afterATakeOver();
        files.change().lose(lost);
        if (lost > 0) {
            told = Math.min(told, files.look().commit());
        }
        require(
                told <= files.look().commit(),
                "ranks were told to apply step %d, and the journal has %d",
                told,
                files.look().commit());
        JournalledRun run =
                files.look().run(0).orElseThrow().withPublished(files.look().newestCheckpoint());
        enter(TestCoordinators.takeUpNamed(run, PLAN, RecoveryPolicy.DEFAULT, now), run.placed());
    }

    /** Whether the journal is this supervisor's. */
    boolean owns(int supervisor) {
        return supervisor == supervisors.size() - 1;
    }

    void write(List<JournalRecord> entries) {
        for (JournalRecord entry : entries) {
            if (entry instanceof JournalRecord.RolledBack(int epoch, long step)) {
                told = Math.min(told, step);
                long commit = files.look().commit();
                var states = held.getOrDefault(epoch, Map.of()).values();
                boolean all =
                        states.size() == RANKS
                                && states.stream().allMatch(each -> each.reaches(commit));
                require(!all || commit == 0, "all reach step %d, and go back", commit);
            }
        }
        files.change().write(entries);
    }

    void end(RunOutcome end) {
        outcome = end;
        require(end instanceof RunOutcome.Completed, "the run ended so: %s", end);
        List<ModelRank.Update> last = files.look().checkpoint(STEPS).orElse(List.of());
        require(last.size() == STEPS, "the last checkpoint is %s", last);
    }

    // ---- time -----------------------------------------------------------------------------------

    /** Nothing is on its way: deadlines pass until one of them has somebody do something. */
    void timePasses() {
        for (int tick = 1; tick <= PATIENCE; tick++) {
            now += TICK;
            for (ModelProcess process : processes) {
                ModelRank rank = process.rank();
                if (rank != null) {
                    supervisors.get(rank.supervisor()).renewLease(this, rank, tick * TICK);
                }
            }
            boolean asksAgain = now / TICK % TICKS_TO_ASK_AGAIN == 0;
            supervisors.forEach(each -> each.onTick(this, asksAgain));
            if (outcome != null || reachedBound || violation != null || somethingIsOnItsWay()) {
                return;
            }
        }
        require(false, "nothing has moved for %d s", PATIENCE * TICK / 1_000_000_000);
    }

    private boolean somethingIsOnItsWay() {
        return !toStart.isEmpty()
                || processes.stream().anyMatch(each -> each.mayMove(this))
                || supervisors.stream().anyMatch(each -> each.mayMove(this));
    }
}
