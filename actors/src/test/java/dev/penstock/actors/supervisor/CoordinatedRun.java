package dev.penstock.actors.supervisor;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.collective.CollectiveForm;
import dev.penstock.actors.dataplane.PeerAddress;
import dev.penstock.actors.fault.RecoveryPolicy;
import dev.penstock.actors.journal.JournalRecord;
import dev.penstock.actors.journal.JournalledRun;
import dev.penstock.actors.node.HostedRank;
import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.node.TestNodes;
import dev.penstock.actors.rank.LocationDigests;
import dev.penstock.actors.rank.RankActivity;
import dev.penstock.actors.rank.RankAssignment;
import dev.penstock.actors.rank.RankCommand;
import dev.penstock.actors.rank.RankEvent;
import dev.penstock.actors.rank.RankLocations;
import dev.penstock.actors.spi.CheckpointStore.ShardFile;
import dev.penstock.actors.spi.DegradedPlans;
import dev.penstock.actors.spi.PlanRevision;
import dev.penstock.actors.spi.RankStep;
import dev.penstock.actors.spi.RankSteps;
import dev.penstock.actors.spi.RecoveryReport;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunMember;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.RunSteps;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.actors.spi.StepResult;
import dev.penstock.actors.spi.Timeouts;
import dev.penstock.actors.spi.VitalSigns;
import dev.penstock.schedules.generate.wired.WiredOrder.Backwards;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.Wiring;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.Set;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;

/** A coordinator whose ranks do what a test says, in virtual time. Four steps long. */
final class CoordinatedRun implements RunListener {
    private static final RecoveryPolicy DEGRADED =
            new RecoveryPolicy(
                    true,
                    5,
                    Duration.ofMinutes(10),
                    Duration.ofMinutes(10),
                    RecoveryPolicy.NonFinite.HALT,
                    true,
                    Optional.empty());

    /** In the place of a rank. */
    static final int SUPERVISOR = -1;

    private static final long MILLI = 1_000_000;

    final int ranks;
    private final RecoveryPolicy policy;
    private final List<Effect> last = new ArrayList<>();
    private final List<Effect> all = new ArrayList<>();
    private final DegradedPlans plans;

    /** What it answers when it is asked for plans; a test may have that take long. */
    final List<Effect.AskPlan> plansAsked = new ArrayList<>();

    boolean plansAreMade = true;
    private final List<RankCommand> told = new ArrayList<>();
    private final List<Integer> toldRanks = new ArrayList<>();
    private final List<Long> committed = new ArrayList<>();
    private final List<String> stalls = new ArrayList<>();
    private final List<String> unsaved = new ArrayList<>();
    private final List<String> planNotes = new ArrayList<>();
    private List<RunMember> members = List.of();
    private final List<RecoveryReport> recoveries = new ArrayList<>();
    private final Map<Integer, Integer> births = new HashMap<>();
    private final Map<Integer, Long> pids = new HashMap<>();

    /** What each rank has put together from what it was told. */
    private final Map<Integer, RankLocations> locations = new HashMap<>();

    private final Set<Long> full = new HashSet<>();
    private List<Integer> homes = List.of();
    private Timeouts timeouts = Timeouts.DEFAULT;
    private RunSteps steps = new RunSteps(0, 4, 0, 0, 0, 0);
    private RunPlan plan;
    private RankCommand.@Nullable BeginPass pass;
    private Map<Integer, NodeInfo> asked = Map.of();
    private @Nullable RunOutcome outcome;
    private IntFunction<Optional<VitalSigns>> vitals = _ -> Optional.empty();
    private long nextPid = 100;
    private int epoch = 1;
    private long applied;
    private String cause = "";

    RunCoordinator coordinator;
    long now = 1;

    CoordinatedRun(int ranks, RecoveryPolicy policy) {
        this.ranks = ranks;
        this.policy = policy;
        this.plan = plan();
        this.plans = DegradedPlans.NONE;
        this.coordinator = TestCoordinators.begin(plan, policy, now);
    }

    /** Replicas that do each other's work; two stages of each, two micro-batches per replica. */
    static CoordinatedRun degraded(int replicas) {
        var plans =
                new WiredPlans(
                        2,
                        replicas,
                        2 * replicas,
                        Backwards.FULL,
                        new RunSteps(0, 14, 0, 0, 0, 0),
                        CollectiveForm.NEVER,
                        Map.of());
        return new CoordinatedRun(plans.first(), DEGRADED, plans);
    }

    private CoordinatedRun(RunPlan plan, RecoveryPolicy policy, DegradedPlans plans) {
        this.ranks = plan.ranks();
        this.policy = policy;
        this.plan = plan;
        this.plans = plans;
        this.coordinator = TestCoordinators.begin(plan, policy, now);
    }

    /** Another supervisor takes the run up, by the journal. */
    CoordinatedRun isTakenUp() {
        JournalledRun known = JournalledRun.of(journal()).orElseThrow();
        coordinator = TestCoordinators.takeUp(known, plan, policy, now);
        epoch = known.epoch();
        return take(coordinator.onTick(now));
    }

    private RunPlan plan() {
        var pipeline = new ChainPipeline("1f1b", new ChainStage.Settings(ranks, 2, 1, false, 0.01));
        pipeline.runSteps = steps;
        pipeline.timeouts = timeouts;
        return pipeline.plan();
    }

    /** Leases that run out long after a stall is to be told of. */
    CoordinatedRun withLongLeases() {
        timeouts =
                new Timeouts(
                        Duration.ofMinutes(10),
                        Duration.ofSeconds(5),
                        Duration.ofMinutes(1),
                        Duration.ofMinutes(1),
                        Duration.ofSeconds(10));
        plan = plan();
        coordinator = TestCoordinators.begin(plan, policy, now);
        return this;
    }

    CoordinatedRun saveEvery(int every) {
        steps = new RunSteps(0, 4, 0, 0, 0, every);
        plan = plan();
        coordinator = TestCoordinators.begin(plan, policy, now);
        return this;
    }

    /** Performs effects as far as a test needs to see them. */
    CoordinatedRun take(List<Effect> effects) {
        last.clear();
        last.addAll(effects);
        all.addAll(effects);
        for (Effect effect : effects) {
            switch (effect) {
                case Effect.TellRank(int rank, RankCommand order) -> {
                    told.add(order);
                    toldRanks.add(rank);
                    epoch = Math.max(epoch, order.epoch());
                    if (order instanceof RankCommand.BeginPass begin) {
                        pass = begin;
                    }
                    if (order instanceof RankCommand.Resume resume) {
                        locations.computeIfPresent(
                                rank, (_, held) -> held.with(resume.links().changed()));
                    }
                }
                case Effect.HostRank(_, RankAssignment birth) -> {
                    births.put(birth.rank(), birth.epoch());
                    locations.put(birth.rank(), RankLocations.NONE.with(birth.links().changed()));
                }
                case Effect.Notify(var call) -> call.accept(this);
                case Effect.AskRoom(var nodes) -> asked = nodes;
                case Effect.ReadVitals(var nodes) -> readVitals(nodes);
                case Effect.AskPlan asks -> plansAsked.add(asks);
                case Effect.Finish(RunOutcome end) -> outcome = end;
                case Effect.Journal _,
                        Effect.Publish _,
                        Effect.Abandon _,
                        Effect.FindOlder _,
                        Effect.Dismiss _,
                        Effect.Leave _,
                        Effect.StartProcess _,
                        Effect.RestartLink _ -> {}
            }
        }
        now += MILLI;
        if (plansAreMade && !plansAsked.isEmpty()) {
            return makesPlans();
        }
        Map<Integer, NodeInfo> question = asked;
        asked = Map.of();
        return question.isEmpty()
                ? this
                : take(coordinator.onRoom(question, !isFull(question), now));
    }

    private boolean isFull(Map<Integer, NodeInfo> question) {
        return question.values().stream().anyMatch(node -> full.contains(node.pid()));
    }

    /** There is no room for any more ranks where this one lives. */
    CoordinatedRun hasNoRoom(int rank) {
        full.add(pids.getOrDefault(rank, -1L));
        return this;
    }

    CoordinatedRun hasRoomAgain(int rank) {
        full.remove(pids.getOrDefault(rank, -1L));
        return this;
    }

    /** The cluster has no node for what it is to start. */
    CoordinatedRun findsNoRoom() {
        return take(coordinator.onNoRoom("waits for a node", now));
    }

    /** The plans that it was asked for last are there. */
    CoordinatedRun makesPlans() {
        Effect.AskPlan asks = plansAsked.getLast();
        plansAsked.clear();
        Optional<RunPlan> made = plans.without(asks.now(), asks.absent());
        return take(coordinator.onPlan(asks.absent(), made, now));
    }

    /**
     * The ranks' processes are on the supervisor's host.
     *
     * @param seen what there is to see of a rank's process; of the supervisor's for {@value
     *     #SUPERVISOR}
     */
    CoordinatedRun withVitals(IntFunction<Optional<VitalSigns>> seen) {
        vitals = seen;
        return this;
    }

    private void readVitals(Set<NodeInfo> nodes) {
        Map<NodeInfo, VitalSigns> signs = new HashMap<>();
        for (NodeInfo node : nodes) {
            vitals.apply(node.rank().orElseThrow()).ifPresent(seen -> signs.put(node, seen));
        }
        assertThat(coordinator.onVitals(signs, vitals.apply(SUPERVISOR), now)).isEmpty();
    }

    private CoordinatedRun says(RankEvent event) {
        return take(coordinator.onRankEvent(event, now));
    }

    // ---- what ranks do --------------------------------------------------------------------------

    CoordinatedRun open() {
        for (int rank = 0; rank < ranks; rank++) {
            announces(rank);
        }
        for (int rank = 0; rank < ranks; rank++) {
            hosted(rank).opens(rank);
        }
        return this;
    }

    /** A process that was started for a rank introduces itself and hosts it. */
    CoordinatedRun joins(int rank) {
        return announces(rank).hosted(rank);
    }

    /** A process that was started for a rank introduces itself. */
    CoordinatedRun announces(int rank) {
        long pid = nextPid++;
        pids.put(rank, pid);
        return take(coordinator.onNode(TestNodes.of("n" + pid, pid, rank), now));
    }

    /** A process says that it hosts a rank, which another supervisor sent there. */
    CoordinatedRun isFound(int rank) {
        long pid = pids.getOrDefault(rank, -1L);
        var hosted = new HostedRank(rank, birthEpoch(rank));
        return take(
                coordinator.onNode(
                        TestNodes.of("n" + pid, pid, rank), epoch, List.of(hosted), now));
    }

    /** A node for a rank introduces itself and says where its data plane is. */
    CoordinatedRun announces(int rank, PeerAddress address) {
        long pid = nextPid++;
        pids.put(rank, pid);
        return take(coordinator.onNode(TestNodes.of("n" + pid, pid, rank, address), now));
    }

    CoordinatedRun hosted(int rank) {
        return take(coordinator.onHosted(rank, birthEpoch(rank), now));
    }

    private int birthEpoch(int rank) {
        return births.getOrDefault(rank, 0);
    }

    CoordinatedRun opens(int rank) {
        return says(new RankEvent.Opened(rank, birthEpoch(rank), "device", "kernels"));
    }

    /** All ranks answer the pass under way. */
    CoordinatedRun passes() {
        RankCommand.BeginPass begin = passUnderWay();
        for (int rank = 0; rank < ranks; rank++) {
            var loss = rank == ranks - 1 ? OptionalDouble.of(3) : OptionalDouble.empty();
            says(
                    new RankEvent.PassDone(
                            rank, epoch, begin.pass(), new StepResult(loss, List.of())));
        }
        return this;
    }

    /** These ranks answer the pass under way. */
    CoordinatedRun computed(int... some) {
        for (int rank : some) {
            var result = new StepResult(OptionalDouble.empty(), List.of());
            says(new RankEvent.PassDone(rank, epoch, passUnderWay().pass(), result));
        }
        return this;
    }

    /** So much time passes, in which all ranks renew their leases and do nothing. */
    CoordinatedRun waits(Duration span) {
        long start = now;
        long end = now + span.toNanos();
        while (now < end) {
            now += Math.min(Duration.ofMillis(500).toNanos(), end - now);
            for (int rank = 0; rank < ranks; rank++) {
                lease(rank, epoch, now - start);
            }
            take(coordinator.onTick(now));
        }
        return this;
    }

    CoordinatedRun refuses(int rank, int inEpoch) {
        return says(new RankEvent.Refused(rank, inEpoch));
    }

    CoordinatedRun stepDone(int rank) {
        return says(new RankEvent.StepDone(rank, epoch, passUnderWay().step(), timings(rank)));
    }

    /** A step that was committed before is told of again, and all have applied it. */
    CoordinatedRun applies(long step) {
        for (int rank = 0; rank < ranks; rank++) {
            says(new RankEvent.StepDone(rank, epoch, step, timings(rank)));
        }
        return this;
    }

    private RankStep timings(int rank) {
        int ops = plan.program(StepKind.TRAIN, rank).ops().size();
        return RankSteps.of(rank, new long[ops], new long[ops], 0, 0, 0, 0);
    }

    /** The whole step under way. */
    CoordinatedRun step() {
        applied = passUnderWay().step();
        passes();
        return applies(applied);
    }

    /** All ranks answer the save under way, if there is one. */
    CoordinatedRun saves() {
        for (int rank = 0; rank < ranks; rank++) {
            var file = new ShardFile(rank, "stage-" + rank, 1, "00");
            says(new RankEvent.Saved(rank, epoch, applied, List.of(file)));
        }
        return this;
    }

    CoordinatedRun published(long step) {
        return take(coordinator.onPublished(new Publication(step, 1, 1, Optional.empty()), now));
    }

    CoordinatedRun isNotPublished(long step, String reason) {
        return take(coordinator.onPublished(new Publication(step, 1, 1, Optional.of(reason)), now));
    }

    CoordinatedRun dies(int rank) {
        return take(
                coordinator.onProcessDied(
                        pids.getOrDefault(rank, -1L), Optional.of(rank), "kill -9", now));
    }

    /** Somebody wants another plan, of the same order. */
    CoordinatedRun revises(PlanRevision revision) {
        return take(coordinator.onRevise(plan.as(revision, plan.hash()), now));
    }

    /** Somebody wants the run to end. */
    CoordinatedRun interrupts() {
        return take(coordinator.onInterrupt(now));
    }

    CoordinatedRun linkLost(int rank) {
        return says(new RankEvent.LinkLost(rank, epoch, "the link broke"));
    }

    CoordinatedRun notFinite(int rank, long step) {
        return says(new RankEvent.NonFinite(rank, epoch, step, "a NaN in step " + step));
    }

    CoordinatedRun lease(int rank, int inEpoch) {
        return lease(rank, inEpoch, 0);
    }

    private CoordinatedRun lease(int rank, int inEpoch, long sinceNanos) {
        var idle =
                new RankActivity(RankActivity.State.IDLE, StepKind.TRAIN, 0, 0, sinceNanos, "idle");
        return says(new RankEvent.Lease(rank, inEpoch, idle));
    }

    /** A little more than a lease passes, in which only these ranks renew theirs. */
    CoordinatedRun silentBut(int... alive) {
        for (int tick = 0; tick < 8; tick++) {
            now += plan.timeouts().lease().toNanos() / 7;
            for (int rank : alive) {
                lease(rank, 1);
            }
            take(coordinator.onTick(now));
        }
        return this;
    }

    CoordinatedRun findsDamaged(int rank, long step) {
        return says(new RankEvent.CheckpointDamaged(rank, epoch, step, "a file is damaged"));
    }

    CoordinatedRun prepared(int... some) {
        for (int rank : some) {
            preparedAt(rank, applied, -1);
        }
        return this;
    }

    CoordinatedRun preparedAt(int rank, long committedStep, long readyStep) {
        var held = new RankEvent.HeldState(rank, committedStep, readyStep);
        return says(prepared(rank, epoch, held, List.of()));
    }

    /** In the middle of a step, of which its stage has summed these micro-batches. */
    CoordinatedRun preparedInStep(int rank, long step, Integer... folded) {
        var held = new RankEvent.HeldState(rank, step - 1, -1);
        var stage =
                new RankEvent.FoldedStage(plan.stagesOf(rank).getFirst(), step, List.of(folded));
        return says(
                new RankEvent.Prepared(
                        rank,
                        epoch,
                        held,
                        List.of(),
                        LocationDigests.NONE,
                        plan.layout(),
                        List.of(stage)));
    }

    CoordinatedRun preparedIn(int wrongEpoch, int rank) {
        var held = new RankEvent.HeldState(rank, applied, -1);
        return says(prepared(rank, wrongEpoch, held, List.of()));
    }

    /** Its stages are those of another plan of the run. */
    CoordinatedRun preparedWithPlan(int rank, String plan) {
        var held = new RankEvent.HeldState(rank, applied, -1);
        return says(
                new RankEvent.Prepared(rank, epoch, held, List.of(), LocationDigests.NONE, plan));
    }

    CoordinatedRun preparedWithMirror(int rank, int mirrored, long step) {
        var held = new RankEvent.HeldState(rank, step, -1);
        var mirror = new RankEvent.HeldState(mirrored, step, -1);
        return says(prepared(rank, epoch, held, List.of(mirror)));
    }

    private RankEvent.Prepared prepared(
            int rank, int inEpoch, RankEvent.HeldState held, List<RankEvent.HeldState> mirrors) {
        var known = locations.getOrDefault(rank, RankLocations.NONE).digests();
        return new RankEvent.Prepared(rank, inEpoch, held, mirrors, known, plan.layout());
    }

    CoordinatedRun resumed(int... some) {
        for (int rank : some) {
            says(new RankEvent.Resumed(rank, epoch, "device", "kernels"));
        }
        return this;
    }

    CoordinatedRun stopped(int... some) {
        for (int rank : some) {
            says(new RankEvent.Stopped(rank, epoch));
        }
        return this;
    }

    // ---- what came of it ------------------------------------------------------------------------

    List<Effect> lastEffects() {
        return List.copyOf(last);
    }

    <T extends RankCommand> List<T> told(Class<T> type) {
        return told.stream().filter(type::isInstance).map(type::cast).toList();
    }

    /** Whom {@link #told} was told, in its order. */
    List<Integer> toldRanks() {
        return List.copyOf(toldRanks);
    }

    void forgetTold() {
        told.clear();
        toldRanks.clear();
    }

    List<Optional<Integer>> started() {
        return all.stream()
                .filter(Effect.StartProcess.class::isInstance)
                .map(effect -> ((Effect.StartProcess) effect).rank())
                .toList();
    }

    /** The entries of the journal, in order. */
    List<JournalRecord> journal() {
        return all.stream()
                .filter(Effect.Journal.class::isInstance)
                .flatMap(effect -> ((Effect.Journal) effect).entries().stream())
                .toList();
    }

    List<RankAssignment> births() {
        return all.stream()
                .filter(Effect.HostRank.class::isInstance)
                .map(effect -> ((Effect.HostRank) effect).birth())
                .toList();
    }

    RankCommand.BeginPass passUnderWay() {
        return Objects.requireNonNull(pass, "no pass was begun");
    }

    int lastEpoch() {
        return epoch;
    }

    RecoveryReport recovery() {
        assertThat(recoveries).as("recoveries").isNotEmpty();
        return recoveries.getLast();
    }

    List<Long> committed() {
        return committed;
    }

    List<String> stalls() {
        return stalls;
    }

    @Nullable RunOutcome outcome() {
        return outcome;
    }

    @Override
    public void onCheckpointFailed(long step, String reason) {
        unsaved.add("step %d: %s".formatted(step, reason));
    }

    @Override
    public void onPlanNote(String note) {
        planNotes.add(note);
    }

    /** What the listener was told of plans. */
    List<String> planNotes() {
        return List.copyOf(planNotes);
    }

    /** What the listener was told of checkpoints that were not written. */
    List<String> unsaved() {
        return List.copyOf(unsaved);
    }

    @Override
    public void onMembers(List<RunMember> present) {
        members = present;
    }

    /** Who takes part, as told last. */
    List<RunMember> members() {
        return members;
    }

    @Override
    public void onPlaced(List<Integer> places) {
        homes = places;
    }

    /** By rank, the lowest that lives in the same process, as told last. */
    List<Integer> homes() {
        return homes;
    }

    @Override
    public void onStep(StepReport report) {
        committed.add(report.step());
    }

    @Override
    public void onRecovery(RecoveryReport report) {
        recoveries.add(report);
        if (report.restart() != RecoveryReport.Restart.SKIPPED) { // else its step is nowhere
            applied = report.fromStep();
        }
    }

    @Override
    public void onRevised(PlanRevision revision, Schedule training, long completed) {
        plan = plans.without(revision, Set.copyOf(absentOf(training))).orElse(plan);
        plan = plan.as(revision, plan.hash());
    }

    private static List<Integer> absentOf(Schedule training) {
        return training.placement().wiring().map(Wiring::absent).orElse(List.of());
    }

    /** The plan that the ranks follow, as told last. */
    RunPlan followed() {
        return plan;
    }

    @Override
    public void onRecovering(int inEpoch, String why) {
        cause = why;
    }

    /** Why the run recovers, as told last. */
    String recoveringCause() {
        return cause;
    }

    @Override
    public void onStall(String report) {
        stalls.add(report);
    }
}
