package dev.penstock.actors.simulation;

import dev.penstock.actors.fault.RecoveryPolicy;
import dev.penstock.actors.journal.JournalRecord;
import dev.penstock.actors.journal.JournalledRun;
import dev.penstock.actors.rank.RankAssignment;
import dev.penstock.actors.rank.RankCommand;
import dev.penstock.actors.rank.RankEvent;
import dev.penstock.actors.rank.StateSource;
import dev.penstock.actors.spi.PlanRevision;
import dev.penstock.actors.spi.RecoveryReport;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.actors.supervisor.WiredPlans;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** What must hold at every moment of a run, whatever goes wrong. */
final class RunChecks implements RunListener, SimStage.Watch {
    private static final int FEW = 10;

    /** Leases are extended to four times their time; the last word before may be a moment old. */
    private static final long MOST_STARVED = 11 * World.SECOND;

    private record Told(SimRank to, RankCommand order) {}

    private final Simulation simulation;
    private final World world;
    private final @Nullable Truth truth;
    final Truth seen = new Truth();
    private final Map<Long, JournalRecord.Committed> commits = new HashMap<>();

    /** By step, the first epoch in which it was committed. */
    private final Map<Long, Integer> firstOrdered = new HashMap<>();

    private final Map<Integer, SimRank> committers = new HashMap<>();
    private final List<Told> history = new ArrayList<>();
    private final Set<Integer> acknowledged = new TreeSet<>();
    private long journalled;
    private long reported;
    private int epoch;
    private int recoveries;
    private int stalls;
    private long parkedAt = -1;
    private long stallAt = -1;
    private boolean opened;
    private boolean takenUp;
    private boolean roomDenied;
    private boolean degraded;
    private final Set<Integer> absent = new TreeSet<>();
    private PlanRevision revision = PlanRevision.NONE;

    /** When recoveries were counted that supervisors may still count. */
    private final List<Long> counted = new ArrayList<>();

    private boolean budgetWasSpent;

    /**
     * @param truth of the same run when nothing goes wrong; null while that is found out
     */
    RunChecks(Simulation simulation, @Nullable Truth truth) {
        this.simulation = simulation;
        this.world = simulation.world;
        this.truth = truth;
    }

    int recoveries() {
        return recoveries;
    }

    // ---- I1: the committed losses ---------------------------------------------------------------

    @Override
    public void onOpened(List<String> devices, String fingerprint) {
        opened = true;
    }

    @Override
    public void onStep(StepReport report) {
        long step = report.step();
        world.note("step %d, loss %s", step, report.loss());
        boolean leftOneOut =
                simulation.scenario.skips()
                        && step == reported + 2
                        && step - 1 == simulation.nan.step();
        if (step != reported + 1 && !leftOneOut) {
            world.violated("step %d follows step %d", step, reported);
        }
        reported = step;
        seen.losses.put(step, report.loss());
        if (truth != null && !Double.valueOf(report.loss()).equals(truth.losses.get(step))) {
            world.violated(
                    "I1: loss of step %d is %s instead of %s",
                    step, report.loss(), truth.losses.get(step));
        }
    }

    @Override
    public void onEvaluation(long step, double loss, OptionalDouble accuracy) {
        seen.heldOut.put(step, loss);
        if (truth != null && !Double.valueOf(loss).equals(truth.heldOut.get(step))) {
            world.violated(
                    "I1: held-out loss after step %d is %s instead of %s",
                    step, loss, truth.heldOut.get(step));
        }
    }

    @Override
    public void onRecovery(RecoveryReport report) {
        world.note("%s", report);
        recoveries++;
        boolean wentBack = report.restart() == RecoveryReport.Restart.CHECKPOINT;
        if (!wentBack && report.stepsLost() > 0) {
            world.violated("%d steps lost without going back", report.stepsLost());
        }
        if (report.fromStep() > Math.max(reported, journalled)) {
            boolean leftOut = report.fromStep() == simulation.nan.step();
            if (!leftOut) {
                world.violated("goes on after step %d, which never was", report.fromStep());
            }
        }
        reported = Math.min(reported, report.fromStep());
    }

    @Override
    public void onStall(String report) {
        stallAt = world.now();
        if (report.startsWith("parked")) {
            parkedAt = world.now();
        }
        if (++stalls < FEW) {
            world.note("%s", report);
        }
    }

    // ---- I2: every gradient once ----------------------------------------------------------------

    @Override
    public void updated(int part, long step, ByteBuffer bits) {
        seen.state(part, step, bits);
        Integer ordered = firstOrdered.get(step);
        // a rank that was left behind may hear of a commit when the run has gone back before it
        boolean wasOrdered = ordered != null && ordered < epoch;
        if (step != journalled && !wasOrdered) {
            world.violated("part %d applies step %d, journalled is %d", part, step, journalled);
        }
        if (truth != null && !bits.equals(truth.state(part, step))) {
            world.violated("I2: state of part %d after step %d differs", part, step);
        }
    }

    @Override
    public void exchanged(int part, long step, ByteBuffer bits) {
        seen.exchanged(part, step, bits);
        if (truth != null && !bits.equals(truth.settled(part, step))) {
            world.violated("I2: part %d after the exchange behind step %d differs", part, step);
        }
    }

    @Override
    public void waitsForExchange() {
        simulation.strikeExchange();
    }

    void published(long step) {
        Map<Integer, ByteBuffer> set = simulation.disk.published().getOrDefault(step, Map.of());
        set.forEach(
                (part, bits) -> {
                    if (truth != null && !isSaved(bits, part, step, truth)) {
                        world.violated("checkpoint %d has another part %d", step, part);
                    }
                });
    }

    /** Behind a step that was left out, an exchange may be under way for longer. */
    private boolean isSaved(ByteBuffer bits, int part, long step, Truth right) {
        boolean leftOut = simulation.scenario.skips() && bits.equals(right.state(part, step));
        return leftOut || bits.equals(right.settled(part, step));
    }

    // ---- the journal ----------------------------------------------------------------------------

    void journalled(JournalRecord entry) {
        switch (entry) {
            case JournalRecord.Began began -> epoch = began.epoch();
            case JournalRecord.EpochRaised(int to, String _) -> {
                if (to <= epoch) {
                    world.violated("epoch %d after %d", to, epoch);
                }
                epoch = to;
                committers.clear();
                roomDenied = false;
                acknowledged.clear();
            }
            case JournalRecord.Committed commit -> {
                if (commit.step() <= journalled) {
                    world.violated("two commits of step %d", commit.step());
                }
                journalled = commit.step();
                commits.put(commit.step(), commit);
                firstOrdered.putIfAbsent(commit.step(), commit.epoch());
            }
            case JournalRecord.RolledBack(int _, long step) -> {
                if (step < journalled && !mayGoBack()) { // to the last step is no way back
                    world.violated("goes back to %d though all of %d is there", step, journalled);
                }
                journalled = step;
                // a checkpoint is after a step that was reported, if by a former supervisor
                boolean before = takenUp && seen.losses.containsKey(step);
                reported = before ? step : Math.min(reported, step);
            }
            case JournalRecord.Counted _ -> counted.add(world.now());
            case JournalRecord.Revised(PlanRevision revision) -> follow(revision);
            case JournalRecord.Failed _ -> budgetWasSpent = isBudgetSpent();
            case JournalRecord.Placed _,
                    JournalRecord.Published _,
                    JournalRecord.Skipped _,
                    JournalRecord.LossScaled _,
                    JournalRecord.Ended _ -> {}
        }
    }

    private void follow(PlanRevision next) {
        revision = next;
        absent.clear();
        if (simulation.scenario.wired()) {
            absent.addAll(WiredPlans.absent(next));
            degraded |= !absent.isEmpty();
        }
    }

    /** The plan that the run follows. */
    PlanRevision revision() {
        return revision;
    }

    /** Whether the run ever went on without a rank. */
    boolean wasDegraded() {
        return degraded;
    }

    /**
     * Only where some rank's state is nowhere, with no living rank and in no living mirror, or
     * there is no room for it.
     */
    private boolean mayGoBack() {
        boolean onPurpose =
                simulation.nan.hasStruck()
                        && simulation.scenario.policy().nonFinite()
                                == RecoveryPolicy.NonFinite.ROLLBACK;
        if (onPurpose
                || simulation.hasRevisedPlans()
                || roomDenied
                || holdsNothing()
                || isBeyondTheJournal()) {
            return true;
        }
        for (int rank = 0; rank < simulation.plan.ranks(); rank++) {
            if (!absent.contains(rank) && !isThere(rank)) {
                return true;
            }
        }
        return false;
    }

    /**
     * A rank applied what the journal has lost: it cannot take it back, and others cannot follow.
     */
    private boolean isBeyondTheJournal() {
        return simulation.scenario.has(Scenario.Kind.LOST_JOURNAL_END)
                && prepared().anyMatch(said -> said.state().committedStep() > journalled);
    }

    /**
     * A rank that met a damaged checkpoint lives, holds nothing and keeps its place: where others
     * have a mirror of it, that is no use to it.
     */
    private boolean holdsNothing() {
        return simulation.scenario.has(Scenario.Kind.DAMAGED_CHECKPOINT)
                && prepared().anyMatch(said -> said.state().committedStep() < 0);
    }

    private boolean isThere(int rank) {
        return prepared().anyMatch(said -> has(said, rank));
    }

    private Stream<RankEvent.Prepared> prepared() {
        return simulation.processes.stream()
                .filter(SimProcess::isWell)
                .flatMap(process -> process.ranks.stream())
                .filter(each -> !each.fenced && !each.hasEnded())
                .map(each -> each.prepared)
                .filter(said -> said != null && said.epoch() == epoch);
    }

    private boolean has(RankEvent.Prepared said, int rank) {
        return (said.rank() == rank && said.state().reaches(journalled))
                || said.mirrors().stream()
                        .filter(each -> each.reaches(journalled))
                        .anyMatch(each -> each.rank() == rank || isForCopies(each, said, rank));
    }

    /** By its own number, a rank says what it is to those that hold the same. */
    private boolean isForCopies(RankEvent.HeldState each, RankEvent.Prepared said, int rank) {
        return each.rank() == said.rank() && simulation.plan.copiesOf(rank).contains(said.rank());
    }

    /** Whether ranks may go where their mirrors are. */
    void roomGranted(boolean granted) {
        roomDenied |= !granted;
    }

    void heard(RankEvent event) {
        if (event instanceof RankEvent.Prepared prepared && prepared.epoch() == epoch) {
            acknowledged.add(prepared.rank());
        }
    }

    /** A new supervisor does not know whether the old one reported the last commit's step. */
    void takenUp(JournalledRun run) {
        takenUp = true;
        if (!counted.isEmpty()) { // that the last one is older, another's clock may not say
            long older = world.now() - counted.getLast();
            counted.replaceAll(at -> at + older);
        }
        if (simulation.scenario.has(Scenario.Kind.LOST_JOURNAL_END)) {
            epoch = run.epoch();
            follow(run.revision());
            journalled = run.completed();
        }
    }

    // ---- orders ---------------------------------------------------------------------------------

    void told(SimRank to, RankCommand order) {
        switch (order) {
            case RankCommand.Commit commit -> {
                var promised = commits.get(commit.step());
                if (promised == null
                        || commit.step() != journalled
                        || !promised.clipFactor().equals(commit.clipFactor())) {
                    world.violated("%s is not what was journalled: %s", commit, promised);
                }
                SimRank other = committers.put(to.birth.rank(), to);
                if (other != null && other != to) {
                    world.violated("two of rank %d commit in epoch %d", to.birth.rank(), epoch);
                }
            }
            case RankCommand.Fence _ -> {
                to.fenced = true;
                if (simulation.scenario.proofs()
                        && !takenUp
                        && to.process.isOnlyStarvedFor(MOST_STARVED)) {
                    world.violated("%s though its process lives: %s", order, to.process);
                }
                if (2 * acknowledged.size() <= simulation.plan.ranks() - absent.size()) {
                    world.violated("%s without a majority: %s", order, acknowledged);
                }
            }
            case RankCommand.BeginPass _,
                    RankCommand.Save _,
                    RankCommand.Prepare _,
                    RankCommand.Resume _,
                    RankCommand.Stop _ -> {}
        }
        history.add(new Told(to, order));
        if (order.epoch() != epoch && epoch > 0) {
            world.violated("%s in epoch %d", order, epoch);
        }
    }

    /** As a supervisor would that does not know that another has its place. */
    void tellAnOldOrder() {
        if (history.isEmpty()) {
            return;
        }
        Told old = world.one(history);
        old.to().process.after(0, () -> old.to().hearOld(old.order()));
    }

    void placed(SimProcess process, RankAssignment birth) {
        if (birth.start() instanceof StateSource.FromMirror(int holder, long _)
                && process.ranks.stream().noneMatch(r -> r.birth.rank() == holder)) {
            world.violated("rank %d is sent where rank %d is not", birth.rank(), holder);
        }
    }

    // ---- the end --------------------------------------------------------------------------------

    /** Every run ends, and ends well unless there is a reason. */
    void atTheEnd(@Nullable RunOutcome outcome) {
        world.note("ends with %s", outcome);
        if (outcome == null) {
            if (world.violations().isEmpty() && !mayBeParked() && !isReportedToHang()) {
                world.violated("the run hangs");
            }
            return;
        }
        Scenario scenario = simulation.scenario;
        switch (outcome) {
            case RunOutcome.Completed(long step) -> {
                boolean lastLeftOut = scenario.skips() && simulation.nan.step() == step;
                if (step != scenario.steps() || (reported != step && !lastLeftOut)) {
                    world.violated("completed after step %d, reported %d", step, reported);
                }
            }
            case RunOutcome.Interrupted(long step) -> {
                boolean leftOut = scenario.skips() && simulation.nan.step() == step;
                boolean reportedBefore = takenUp && reported == step + 1;
                boolean asReported = reported == step || leftOut || reportedBefore;
                if (!scenario.has(Scenario.Kind.INTERRUPT) || !asReported) {
                    world.violated("interrupted after step %d, reported %d", step, reported);
                }
            }
            case RunOutcome.Failed(long _, String reason) -> {
                if (!isAReason(reason)) {
                    world.violated("failed without need: %s", reason);
                }
            }
        }
    }

    /** Without proof of a death, a minority stands still for as long as it is one, and says so. */
    private boolean mayBeParked() {
        long well =
                simulation.processes.stream()
                        .filter(SimProcess::isWell)
                        .flatMap(process -> process.ranks.stream())
                        .filter(each -> !each.hasEnded() && !each.isStuck())
                        .map(each -> each.birth.rank())
                        .distinct()
                        .count();
        boolean saysSo = parkedAt > world.now() - 10 * World.SECOND;
        return saysSo && 2 * well <= simulation.plan.ranks();
    }

    /** An op of a rank that lives may take any time; that it does is told all the while. */
    private boolean isReportedToHang() {
        return stallAt > world.now() - 10 * World.SECOND
                && simulation.processes.stream()
                        .filter(SimProcess::isWell)
                        .flatMap(process -> process.ranks.stream())
                        .anyMatch(SimRank::hangsInAnOp);
    }

    private boolean isAReason(String reason) {
        Scenario scenario = simulation.scenario;
        return !opened
                || (reason.contains("max-restarts")
                        && scenario.policy().maxRestarts() < 50
                        && budgetWasSpent)
                || (reason.contains("not finite") && simulation.nan.hasStruck())
                || scenario.has(Scenario.Kind.STUCK);
    }

    /** By clocks that may go a little slow. */
    private boolean isBudgetSpent() {
        var policy = simulation.scenario.policy();
        long window = policy.window().toNanos() * 11 / 10 + 10 * World.MILLISECOND;
        return counted.stream().filter(at -> at > world.now() - window).count()
                > policy.maxRestarts();
    }
}
