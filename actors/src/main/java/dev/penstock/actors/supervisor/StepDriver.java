package dev.penstock.actors.supervisor;

import dev.penstock.actors.journal.JournalRecord;
import dev.penstock.actors.journal.JournalledRun;
import dev.penstock.actors.precision.LossScaleHistory;
import dev.penstock.actors.precision.LossScaler;
import dev.penstock.actors.precision.Overflow;
import dev.penstock.actors.rank.RankCommand;
import dev.penstock.actors.rank.RankEvent;
import dev.penstock.actors.rank.StateSource;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.actors.spi.StepReport;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalLong;
import java.util.Set;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What a run does while all its ranks are open: two-phase steps (all ranks report their gradients,
 * then the commit, then the optimizers), evaluations and checkpoints, one round of answers at a
 * time.
 */
final class StepDriver {
    private static final Logger LOG = LoggerFactory.getLogger(StepDriver.class);

    private final RunPlan plan;
    private final RankTable ranks;
    private final Outbox out;
    private final StallWatch stalls;
    private LossScaleHistory scales;

    private @Nullable PassRound pass;
    private @Nullable CommitRound commit;
    private @Nullable SaveRound save;
    private @Nullable Evaluation evaluation;
    private boolean publishing;
    private Set<Integer> moving = Set.of();
    private @Nullable RunPlan revised;

    /** Micro-batches of a step that ranks need not do again. */
    private List<Integer> leftOut = List.of();

    private long leftOutStep;
    private boolean interrupted;
    private long passes;
    private long completed;
    private long evaluatedAfter = -1;
    private long savedAfter = -1;
    private long lastCommit;
    private long published = JournalledRun.NONE;

    /** Whether an older checkpoint is looked for, because the published one is damaged. */
    private boolean looksForOlder;

    private long stepStartNanos;

    /** When the ranks were told last what to do. */
    private long roundStartNanos;

    /** The start of the round whose orders were given a second time. */
    private long repeatedRoundNanos = -1;

    StepDriver(RunPlan plan, RankTable ranks, Outbox out, StallWatch stalls) {
        this.plan = plan;
        this.ranks = ranks;
        this.out = out;
        this.stalls = stalls;
        this.completed = plan.steps().completed();
        this.scales = new LossScaleHistory(plan.steps().scaler(), completed);
        this.lastCommit = completed;
    }

    /**
     * Goes on where another supervisor stopped. Its last commit may have reached nobody, and its
     * step may have been reported or not: both are done (again) when the ranks are back.
     */
    void takeUp(JournalledRun run, long now) {
        stepStartNanos = now; // it does not know when the other one began that step
        completed = run.completed();
        lastCommit = run.applied();
        scales = run.scales(plan.steps().scaler());
        published = run.published();
        savedAfter = published;
        run.commit()
                .filter(last -> last.step() == run.completed())
                .ifPresent(
                        last -> {
                            completed = last.step() - 1;
                            scales.goBackTo(completed);
                            Optional<Overflow> overflow =
                                    last.skips()
                                            ? scales.now()
                                                    .map(s -> Overflow.somewhere(last.step(), s))
                                            : Optional.empty();
                            commit =
                                    new CommitRound(
                                            ranks,
                                            last.step(),
                                            last.loss(),
                                            last.gradientNorm(),
                                            last.clipFactor().orElse(1),
                                            overflow,
                                            scales);
                            scales.take(last.step(), last.skips());
                        });
    }

    /** The last step that was applied everywhere. */
    long completed() {
        return completed;
    }

    boolean publishing() {
        return publishing;
    }

    boolean looksForOlder() {
        return looksForOlder;
    }

    boolean interrupted() {
        return interrupted;
    }

    /**
     * What of a run that saves on its way would be lost if it ended here, as a reason why it is not
     * saved; empty if all of it is in a checkpoint.
     */
    Optional<String> unsavedSteps() {
        long saved = Math.max(published, plan.steps().completed());
        return plan.steps().checkpointEvery() > 0 && lastCommit > saved
                ? Optional.of(
                        "the run was asked to end while it recovered, and what was done after step %d is in no checkpoint that is published; --resume does it again"
                                .formatted(saved))
                : Optional.empty();
    }

    /** Finish what is under way, save, and end. */
    void interrupt() {
        interrupted = true;
    }

    /** Since when ranks that stand still keep this run from going on; empty if they do not. */
    OptionalLong waitsForRanksSince() {
        boolean waits = pass != null || commit != null || save != null;
        return waits ? OptionalLong.of(roundStartNanos) : OptionalLong.empty();
    }

    /**
     * Says the order of the round again to ranks that have not answered for half as long as it may
     * take: a connection that broke takes messages with it. Once per round; to answer an order
     * twice changes nothing.
     */
    void repeatOrders(long now) {
        boolean late = now - roundStartNanos > plan.timeouts().stallLimit().toNanos() / 2;
        if (!late || repeatedRoundNanos == roundStartNanos) {
            return;
        }
        repeatedRoundNanos = roundStartNanos;
        PassRound passes = pass;
        CommitRound commits = commit;
        SaveRound saves = save;
        for (int rank = 0; rank < ranks.size(); rank++) {
            if (passes != null && passes.lacks(rank)) {
                out.tell(
                        rank,
                        new RankCommand.BeginPass(
                                ranks.epoch(),
                                passes.pass(),
                                passes.kind(),
                                passes.step(),
                                passes.leftOut(),
                                passes.lossScale()));
            } else if (commits != null && commits.lacks(rank)) {
                out.tell(rank, commits.order(ranks.epoch()));
            } else if (saves != null && saves.lacks(rank)) {
                out.tell(rank, new RankCommand.Save(ranks.epoch(), saves.step()));
            }
        }
    }

    /** These ranks leave their nodes between two steps. */
    void move(Set<Integer> ranks) {
        moving = Set.copyOf(ranks);
    }

    /**
     * The run follows this plan from the next step that begins; one that was made for a plan of the
     * past is of no use.
     */
    void revise(RunPlan other) {
        if (other.revision().number() > ranks.revision().number()) {
            revised = other;
        }
    }

    /** Whether the run is to follow another plan from the next step on. */
    boolean isToRevise() {
        return revised != null;
    }

    /** Ranks follow this plan from now on, as the journal and the listener are told first. */
    void follow(RunPlan other) {
        out.add(new Effect.Journal(new JournalRecord.Revised(other.revision())));
        long after = completed;
        out.notify(listener -> listener.onRevised(other.revision(), other.training(), after));
        ranks.follow(other);
        stalls.follow(other);
        revised = null; // made for the plan before
        CommitRound round = commit;
        commit = round == null ? null : round.again(ranks); // timings are of other programs now
    }

    /**
     * The checkpoint, or the beginning, that has the last step of all ranks; empty if none has, or
     * a rank may not have it yet.
     */
    Optional<StateSource> savedState() {
        boolean whole = commit == null && completed == lastCommit;
        if (whole && published == completed && published >= 0) {
            return Optional.of(new StateSource.FromCheckpoint(published));
        }
        return whole && published < 0 && completed == plan.steps().completed()
                ? Optional.of(new StateSource.Fresh())
                : Optional.empty();
    }

    /** Of this step, all stages have the gradients of these micro-batches already. */
    void leaveOut(long step, List<Integer> microBatches) {
        leftOutStep = step;
        leftOut = List.copyOf(microBatches);
        if (!leftOut.isEmpty()) {
            LOG.info(
                    "run {}: step {} goes on without micro-batches {}, which all stages have done",
                    plan.runId(),
                    step,
                    leftOut);
        }
    }

    /** Starts whatever is due next. */
    NextAction proceed(long now) {
        var steps = plan.steps();
        if (!moving.isEmpty() && !interrupted && completed < steps.last()) {
            return whenSaved(new NextAction.Move(moving), now);
        }
        RunPlan next = revised;
        if (next != null && !interrupted && completed < steps.last()) {
            var revise = new NextAction.Revise(next);
            return beginsAnew(next) ? whenSaved(revise, now) : at(revise);
        }
        if (!interrupted && steps.evaluatesAfter(completed) && evaluatedAfter != completed) {
            evaluation = new Evaluation(steps.evaluationBatches(), steps.lastEvaluationShares());
            beginPass(StepKind.EVALUATE, 0, now);
        } else if (saveIsDue() && savedAfter != completed) {
            beginSave(now);
        } else if (interrupted || completed >= steps.last()) {
            return publishing ? NextAction.GO_ON : NextAction.FINISHED;
        } else {
            stepStartNanos = now;
            beginPass(StepKind.TRAIN, completed + 1, now);
        }
        return NextAction.GO_ON;
    }

    /** All wait until a checkpoint has the last step: then a move costs none. */
    private NextAction whenSaved(NextAction wanted, long now) {
        if (publishing) {
            return NextAction.GO_ON; // onPublished goes on
        }
        boolean saved = published == completed || completed == plan.steps().completed();
        if (!saved && savedAfter != completed) {
            beginSave(now);
            return NextAction.GO_ON;
        }
        NextAction begun = at(wanted);
        if (saved) {
            return begun;
        }
        String stays =
                wanted instanceof NextAction.Revise(RunPlan next)
                        ? "the plan does not change to " + next.revision().words()
                        : "no rank moves";
        long step = completed;
        out.notify(
                listener ->
                        listener.onPlanNote(
                                "%s: step %d, from which all would go on, could not be saved"
                                        .formatted(stays, step)));
        return proceed(now);
    }

    private NextAction at(NextAction wanted) {
        if (wanted instanceof NextAction.Move) {
            moving = Set.of();
        } else {
            revised = null;
        }
        return wanted;
    }

    /** Whether somebody needs a state for this plan that is not in memory. */
    private boolean beginsAnew(RunPlan next) {
        return !ranks.canTakeOver(next) || ranks.plan().absent().stream().anyMatch(next::isPresent);
    }

    private boolean saveIsDue() {
        var steps = plan.steps();
        boolean interruptedWithWork =
                interrupted && steps.checkpointEvery() > 0 && completed > steps.completed();
        return steps.savesAfter(completed) || interruptedWithWork;
    }

    private void beginPass(StepKind kind, long step, long now) {
        passes++;
        roundStartNanos = now;
        boolean resumes = kind == StepKind.TRAIN && step == leftOutStep;
        List<Integer> done = resumes ? leftOut : List.of();
        leftOut = List.of(); // what ranks held of it is gone, or theirs to add to
        OptionalDouble lossScale =
                kind == StepKind.TRAIN && scales.now().isPresent()
                        ? OptionalDouble.of(scales.scale())
                        : OptionalDouble.empty();
        pass = new PassRound(ranks, passes, kind, step, done, lossScale);
        out.tellAll(new RankCommand.BeginPass(ranks.epoch(), passes, kind, step, done, lossScale));
    }

    NextAction onPassDone(RankEvent.PassDone done, long now) {
        PassRound round = pass;
        if (round == null || !round.accept(done)) {
            return NextAction.GO_ON;
        }
        pass = null;
        return switch (round.kind()) {
            case TRAIN -> commit(round, now);
            case EVALUATE -> onEvaluated(round, now);
        };
    }

    private NextAction commit(PassRound round, long now) {
        GradientSummary gradients = round.gradients();
        Optional<Overflow> overflow = overflow(round);
        Optional<String> broken =
                overflow.isPresent()
                        ? hopeless(overflow.get())
                        : gradients.problem(round.step(), round.loss());
        if (broken.isPresent()) {
            return new NextAction.NotFinite(round.step(), broken.get());
        }
        double clipFactor = gradients.clipFactor(plan.steps().clipNorm());
        commit =
                new CommitRound(
                        ranks,
                        round.step(),
                        round.loss(),
                        gradients.norm(),
                        clipFactor,
                        overflow,
                        scales);
        scales.take(round.step(), overflow.isPresent());
        lastCommit = round.step();
        roundStartNanos = now;
        out.add(
                new Effect.Journal(
                        new JournalRecord.Committed(
                                ranks.epoch(),
                                round.step(),
                                overflow.isPresent()
                                        ? OptionalDouble.empty()
                                        : OptionalDouble.of(clipFactor),
                                round.loss(),
                                gradients.norm())));
        out.tellAll(commit.order(ranks.epoch()));
        overflow.ifPresent(met -> LOG.info("run {}: {}", plan.runId(), met.words()));
        return NextAction.GO_ON;
    }

    /** What was met in a step whose loss is scaled. */
    private Optional<Overflow> overflow(PassRound round) {
        Optional<LossScaler> scaler = scales.now();
        if (scaler.isEmpty() || round.overflowingRank().isEmpty()) {
            return Optional.empty();
        }
        int rank = round.overflowingRank().getAsInt();
        return Optional.of(
                new Overflow(
                        round.step(),
                        rank,
                        round.overflowingStage(rank).orElseThrow(),
                        scaler.get().scale(),
                        scaler.get().after(true).scale()));
    }

    /** Why an overflow is no matter of the scale any more; empty while it may be one. */
    private Optional<String> hopeless(Overflow met) {
        return scales.now()
                .map(scaler -> scaler.after(true))
                .filter(LossScaler::isStuck)
                .map(
                        scaler ->
                                "step %d, rank %d, stage %d: an overflow, the %dth in a row with the least loss scale, %.0f; nothing of the step was applied; try a lower learning rate or a longer warm-up"
                                        .formatted(
                                                met.step(),
                                                met.rank(),
                                                met.stage(),
                                                scaler.stuck(),
                                                scaler.scale()));
    }

    NextAction onStepDone(RankEvent.StepDone done, long now) {
        CommitRound round = commit;
        if (round == null || !round.accept(done)) {
            return NextAction.GO_ON;
        }
        commit = null;
        completed = round.step();
        StepReport report = round.report(stepStartNanos, now);
        stalls.learn(report);
        Optional<Overflow> overflow = round.overflow();
        if (overflow.isPresent()) {
            out.notify(listener -> listener.onOverflow(overflow.get()));
        } else {
            out.notify(listener -> listener.onStep(report));
        }
        return proceed(now);
    }

    private NextAction onEvaluated(PassRound round, long now) {
        Evaluation under = Objects.requireNonNull(evaluation);
        under.add(round.loss(), round.accuracy());
        if (!under.isComplete() && !interrupted) {
            beginPass(StepKind.EVALUATE, under.batchesDone(), now);
            return NextAction.GO_ON;
        }
        evaluation = null;
        if (under.isComplete()) { // else a resumed run evaluates after this step again
            long step = completed;
            evaluatedAfter = step;
            out.notify(
                    listener ->
                            listener.onEvaluation(step, under.meanLoss(), under.meanAccuracy()));
        }
        return proceed(now);
    }

    // ---- checkpoints ----------------------------------------------------------------------------

    private void beginSave(long now) {
        if (publishing) {
            return; // onPublished goes on
        }
        savedAfter = completed;
        roundStartNanos = now;
        save = new SaveRound(ranks, completed, ranks.epoch(), now);
        out.tellAll(new RankCommand.Save(ranks.epoch(), completed));
    }

    NextAction onSaved(RankEvent.Saved saved, long now) {
        return onSaveAnswer(saved.step(), round -> round.saved(saved), now);
    }

    NextAction onSaveFailed(RankEvent.SaveFailed failed, long now) {
        return onSaveAnswer(failed.step(), round -> round.failed(failed), now);
    }

    private NextAction onSaveAnswer(long step, Predicate<SaveRound> accept, long now) {
        SaveRound round = save;
        if (round == null || round.step() != step || !accept.test(round)) {
            return NextAction.GO_ON;
        }
        save = null;
        Optional<String> failure = round.failure();
        if (failure.isPresent()) {
            out.add(new Effect.Abandon(step, round.epoch()));
            out.notify(listener -> listener.onCheckpointFailed(step, failure.get()));
        } else {
            publishing = true; // verifying and renaming goes on beside the next steps
            out.add(
                    new Effect.Publish(
                            step,
                            round.epoch(),
                            round.files(),
                            round.bytes(),
                            round.startNanos(),
                            scales.now().map(LossScaler::text).orElse("")));
        }
        return proceed(now);
    }

    /**
     * A checkpoint was published, or could not be.
     *
     * @return whether nothing else is under way, so that it is time to proceed
     */
    boolean onPublished(Publication publication) {
        publishing = false;
        long step = publication.step();
        publication
                .failure()
                .ifPresentOrElse(
                        reason -> out.notify(l -> l.onCheckpointFailed(step, reason)),
                        () -> published(publication));
        return pass == null && commit == null && save == null && evaluation == null;
    }

    private void published(Publication publication) {
        long step = publication.step();
        published = step;
        out.add(new Effect.Journal(new JournalRecord.Published(step)));
        out.notify(l -> l.onCheckpoint(step, publication.bytes(), publication.nanos()));
    }

    // ---- recovery -------------------------------------------------------------------------------

    /** Whether a death changes nothing any more: all is done but for the last checkpoint's name. */
    boolean onlyPublishes() {
        boolean idle = pass == null && commit == null && save == null && evaluation == null;
        boolean savesStill = saveIsDue() && savedAfter != completed; // when this one is published
        boolean ended = interrupted || completed >= plan.steps().last();
        return publishing && idle && ended && !savesStill;
    }

    /** Whether held-out data is being looked at, where no step can be left out. */
    boolean evaluates() {
        return evaluation != null;
    }

    /** The newest step whose commit was told; everything else is decided by what ranks hold. */
    long lastCommit() {
        return lastCommit;
    }

    /** Whether a commit is told again when the ranks are back. */
    boolean repeatsCommit() {
        return commit != null;
    }

    /** The ranks stop where they are: all rounds but a commit are void. */
    void halt() {
        pass = null;
        evaluation = null;
        leftOut = List.of();
        if (save != null) {
            out.add(new Effect.Abandon(save.step(), save.epoch()));
            save = null;
            savedAfter = -1;
        }
    }

    /** Goes on from what the ranks hold: a commit that not all have answered is told again. */
    NextAction resume(long now) {
        CommitRound round = commit;
        if (round == null) {
            return proceed(now);
        }
        roundStartNanos = now;
        out.tellAll(round.order(ranks.epoch()));
        return NextAction.GO_ON;
    }

    /** Leaves a step out: nothing of it was applied anywhere. */
    void skip(long step) {
        completed = step;
        scales.take(step, true);
        out.add(new Effect.Journal(new JournalRecord.Skipped(ranks.epoch(), step)));
    }

    /**
     * A checkpoint is damaged: one before it is looked for.
     *
     * @return whether there may be one; false for the checkpoint that the run itself began with
     */
    boolean findOlderThan(long damaged) {
        if (damaged < 0 || damaged != published) {
            return false;
        }
        looksForOlder = true;
        out.add(new Effect.FindOlder(damaged));
        return true;
    }

    /** The answer: what the ranks go back to from now on; if there is none, to the beginning. */
    void foundOlder(OptionalLong step) {
        looksForOlder = false;
        published = step.orElse(JournalledRun.NONE);
        out.add(new Effect.Journal(new JournalRecord.Published(published)));
    }

    /** The ranks go back to the last checkpoint, or to where the run began. */
    StateSource rollBack() {
        boolean fresh = published < 0;
        long step = fresh ? plan.steps().completed() : published;
        evaluatedAfter = Math.min(evaluatedAfter, step);
        savedAfter = fresh ? -1 : step;
        commit = null;
        completed = step;
        lastCommit = step;
        scales.goBackTo(step);
        out.add(new Effect.Journal(new JournalRecord.RolledBack(ranks.epoch(), step)));
        return fresh ? new StateSource.Fresh() : new StateSource.FromCheckpoint(step);
    }
}
