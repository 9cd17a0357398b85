package dev.penstock.actors.exploration;

import dev.penstock.actors.collective.CollectiveForm;
import dev.penstock.actors.fault.RecoveryPolicy;
import dev.penstock.actors.journal.JournalRecord;
import dev.penstock.actors.journal.JournalledRun;
import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.node.TestNodes;
import dev.penstock.actors.rank.RankEvent;
import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.RunSteps;
import dev.penstock.actors.spi.Timeouts;
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
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
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
    private static final int LAST_EPOCH = 4;

    private static final RunPlan PLAN = plan();

    final List<ModelSupervisor> supervisors = new ArrayList<>();
    final List<ModelProcess> processes = new ArrayList<>();

    /** Ranks for which a process was asked for. */
    final List<Integer> toStart = new ArrayList<>();

    final ModelFiles files = new ModelFiles();
    private Faults faults;
    private long now;
    private boolean anyRankWasLost;

    /** By epoch and pass, who has begun it. */
    private final Map<List<Long>, Set<Integer>> begun = new HashMap<>();

    /** By epoch, the supervisor in whose name ranks opened links. */
    private final Map<Integer, Integer> owners = new TreeMap<>();

    private @Nullable RunOutcome outcome;
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

    /** Whether nothing that follows is of interest. */
    boolean isOver() {
        return outcome != null
                || supervisors.stream().anyMatch(each -> each.coordinator.epoch() > LAST_EPOCH);
    }

    // ---- what may happen ------------------------------------------------------------------------

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
        anyRankWasLost = true;
        supervisors.stream().filter(ModelSupervisor::lives).forEach(each -> each.deaths.add(p));
    }

    void start(int which) {
        ModelProcess process = addProcess(toStart.remove(which));
        supervisors.forEach(each -> each.ask(process));
    }

    // ---- what ranks do --------------------------------------------------------------------------

    /** Whether a pass has begun, so that a death is not one of a run that has done nothing. */
    boolean hasTrained() {
        return !begun.isEmpty();
    }

    void says(int process, int to, RankEvent event) {
        processes.get(process).words.get(to).add(new Word.Event(event));
    }

    void opensLinks(ModelRank rank) {
        Integer before = owners.putIfAbsent(rank.epoch(), rank.supervisor());
        require(
                before == null || before == rank.supervisor(),
                "ranks opened links in epoch %d for both supervisors",
                rank.epoch());
    }

    void begins(ModelRank rank, long pass) {
        begun.computeIfAbsent(List.of((long) rank.epoch(), pass), _ -> new TreeSet<>())
                .add(rank.rank);
        for (ModelProcess process : processes) {
            ModelRank other = process.rank();
            if (other != null && other.epoch() == rank.epoch() && hasBegun(other, pass)) {
                require(other.applied().equals(rank.applied()), "%s trains with %s", rank, other);
            }
        }
    }

    private boolean hasBegun(ModelRank rank, long pass) {
        return begun.getOrDefault(List.of((long) rank.epoch(), pass), Set.of()).contains(rank.rank);
    }

    boolean haveAllBegun(int epoch, long pass) {
        return begun.getOrDefault(List.of((long) epoch, pass), Set.of()).size() == RANKS;
    }

    void writes(ModelRank rank, long step) {
        require(rank.applied().size() == step, "%s saves step %d", rank, step);
        files.writePart(rank, step);
    }

    List<ModelRank.Update> checkpoint(long step) {
        Optional<List<ModelRank.Update>> state = files.checkpoint(step);
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

    void takeUp(int lost) {
        faults = faults.afterATakeOver();
        files.lose(lost);
        JournalledRun run = files.run(0).orElseThrow().withPublished(files.newestCheckpoint());
        enter(TestCoordinators.takeUpNamed(run, PLAN, RecoveryPolicy.DEFAULT, now), run.placed());
    }

    /** Whether the journal is this supervisor's. */
    boolean owns(int supervisor) {
        return supervisor == supervisors.size() - 1;
    }

    void write(List<JournalRecord> entries) {
        for (JournalRecord entry : entries) {
            if (entry instanceof JournalRecord.RolledBack && !anyRankWasLost) {
                long commit = files.commit();
                boolean all =
                        processes.stream()
                                .map(ModelProcess::rank)
                                .allMatch(rank -> rank != null && rank.reaches(commit));
                require(!all || commit == 0, "all reach step %d, and go back", commit);
            }
        }
        files.write(entries);
    }

    void end(RunOutcome end) {
        outcome = end;
        require(end instanceof RunOutcome.Completed, "the run ended so: %s", end);
        List<ModelRank.Update> last = files.checkpoint(STEPS).orElse(List.of());
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
            if (outcome != null || violation != null || somethingIsOnItsWay()) {
                return;
            }
        }
        require(false, "nothing has moved for %d s", PATIENCE * TICK / 1_000_000_000);
    }

    private boolean somethingIsOnItsWay() {
        return !toStart.isEmpty()
                || processes.stream()
                        .anyMatch(
                                each ->
                                        each.orders.stream().anyMatch(some -> !some.isEmpty())
                                                || hasWords(each));
    }

    private boolean hasWords(ModelProcess process) {
        for (int s = 0; s < supervisors.size(); s++) {
            if (supervisors.get(s).lives() && !process.words.get(s).isEmpty()) {
                return true;
            }
        }
        return false;
    }
}
