package dev.penstock.actors.rank;

import com.sun.management.ThreadMXBean;
import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.FrameListener;
import dev.penstock.actors.mirror.MirrorLayout;
import dev.penstock.actors.spi.DamagedCheckpointException;
import dev.penstock.actors.spi.DeviceFailureListener;
import dev.penstock.actors.spi.NonFiniteException;
import dev.penstock.actors.spi.RankStep;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.actors.spi.StepTraffic;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.DeviceLostException;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The life of a rank: takes commands, runs passes one op at a time, commits, prepares and resumes,
 * and reports the results. A plain object: it knows neither actors nor timers, so that an actor and
 * a simulation can drive the same decisions. Its owner's thread only.
 */
public final class RankRunner implements AutoCloseable {
    /** What the owner must do next. */
    public enum Next {
        /** Nothing, until a command or a frame arrives. */
        WAIT,
        /** Call {@link #runOp} soon; once, however often this was returned. */
        RUN_OP,
        /** Call {@link #runOp} after a nap: the log is full or the peer is not connected yet. */
        RETRY_LINK,
        /** Close this rank and end. */
        END
    }

    private static final Logger LOG = LoggerFactory.getLogger(RankRunner.class);

    private static final long NOTHING = -1;

    private final int rank;
    private final RankStatus status;
    private Consumer<RankEvent> events;
    private final IntFunction<FrameListener> listeners;
    private final ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    private final DeviceFailureListener losses;
    private final RankWork work;

    private int epoch;
    private RankLocations locations = RankLocations.NONE;
    private long committedStep;
    private RankCommand.@Nullable BeginPass passUnderWay;
    private RankCommand.@Nullable BeginPass uncommitted;

    /** Answers to orders of this epoch, in case one was lost and its order is given again. */
    private RankEvent.@Nullable PassDone passDone;

    private RankEvent.@Nullable Saved saved;

    /** Whether state and links of this epoch are in place. */
    private boolean back;

    /** Whether the op at the program counter was tried and is waiting. */
    private boolean waits;

    private @Nullable RankStep lastTimings;

    /** The result of the last training pass that was finished. */
    private PassTimes times = PassTimes.NONE;

    private long heapBytesAtBegin;
    private long heapBytesOfPass;
    private StepTraffic sent = StepTraffic.NOTHING;

    /**
     * Opens the device, stages and links, and reports it.
     *
     * @param status kept up to date for leases
     * @param events receives every event, on this thread
     * @param listeners for each epoch, the listener for arrivals, on the poller's thread
     * @throws RuntimeException if something does not open; nothing stays open then, and the owner
     *     reports it with {@link #tellFailedStart}
     */
    public RankRunner(
            RankAssignment birth,
            RankResources resources,
            RankStatus status,
            Consumer<RankEvent> events,
            IntFunction<FrameListener> listeners) {
        this.rank = birth.rank();
        this.status = status;
        this.events = events;
        this.listeners = listeners;
        this.losses = resources.losses();
        enter(birth.epoch());
        this.work = new RankWork(rank, resources, status::moved);
        try {
            if (restore(birth.start(), birth.links())) {
                tell(
                        new RankEvent.Opened(
                                rank, epoch, work.device().name(), work.device().fingerprint()));
            }
        } catch (RuntimeException | Error e) {
            close(e);
            throw e;
        }
    }

    private void close(Throwable cause) {
        try {
            work.close();
        } catch (RuntimeException e) {
            cause.addSuppressed(e);
        }
    }

    /** Brings the state and opens the links; false if there is no such state. */
    private boolean restore(StateSource start, EpochLinks links) {
        boolean samePlan = links.revision().equals(work.plan().revision());
        work.follow(links.revision());
        status.follow(work.plan());
        locations = locations.with(links.changed());
        MirrorLayout mirrors = locations.mirrors(links.fills());
        boolean kept = start instanceof StateSource.Kept;
        try {
            work.restore(start, mirrors);
        } catch (DamagedCheckpointException e) {
            LOG.error("rank {} cannot start from its checkpoint", rank, e);
            committedStep = NOTHING;
            uncommitted = null;
            long step = start instanceof StateSource.FromCheckpoint(long at) ? at : NOTHING;
            var _ =
                    standStill(
                            new RankEvent.CheckpointDamaged(
                                    rank,
                                    epoch,
                                    step,
                                    "rank %d: %s".formatted(rank, e.getMessage())));
            return false;
        }
        if (!kept) {
            goOnFromWhatWasRestored(); // also when no link opens
        }
        work.connect(links, locations, mirrors, listeners.apply(epoch), () -> status.waits(epoch));
        status.watch(work.underWay());
        if (!kept || !samePlan) { // what was measured is of another program
            noteThatNothingWasComputed();
        }
        back = true;
        return true;
    }

    /** Reports that a rank did not open. */
    public static void tellFailedStart(
            RankAssignment birth,
            RankResources resources,
            Throwable error,
            Consumer<RankEvent> events) {
        int rank = birth.rank();
        LOG.error("rank {} cannot start", rank, error);
        String reason = reason(rank, "start", error);
        if (error instanceof DeviceLostException loss) {
            resources.losses().onLost(rank, loss, reason);
        }
        events.accept(new RankEvent.Failed(rank, birth.epoch(), reason, repeats(error)));
        events.accept(new RankEvent.Stopped(rank, birth.epoch()));
    }

    /**
     * Whether the same would happen again, wherever the rank went. A driver that just died, a disk
     * that could not be read and a GPU that went are no such matter: another node may do.
     */
    private static boolean repeats(Throwable error) {
        for (Throwable each = error; each != null; each = each.getCause()) {
            if (each instanceof DataPlaneException
                    || each instanceof DeviceLostException
                    || each instanceof IOException
                    || each instanceof InternalError) { // a mapped file that cannot be read
                return false;
            }
        }
        return true;
    }

    private void tell(RankEvent event) {
        events.accept(event);
    }

    // ---- what happens ---------------------------------------------------------------------------

    /**
     * Handles a command.
     *
     * @param from receives all further events if the command leads to a higher epoch: whoever
     *     raised it supervises the run. Equal if, and only if, the supervisor is the same
     */
    public Next onOrder(RankCommand order, Consumer<RankEvent> from) {
        if (order.epoch() > epoch) {
            events = from;
        } else if (order.epoch() < epoch || isAnothers(order, from)) {
            LOG.warn("rank {} in epoch {} refuses {}", rank, epoch, order);
            from.accept(new RankEvent.Refused(rank, epoch));
            return Next.WAIT;
        }
        return guarded(() -> take(order));
    }

    /** Two supervisors used one epoch. Anyone who knows it may end the rank. */
    private boolean isAnothers(RankCommand order, Consumer<RankEvent> from) {
        boolean ends = order instanceof RankCommand.Stop || order instanceof RankCommand.Fence;
        return !ends && !from.equals(events);
    }

    /** Runs the next op, if a pass is running. */
    public Next runOp() {
        return guarded(this::advance);
    }

    /** Handles the arrival of a frame or a credit. */
    public Next onLinkMoved() {
        return passUnderWay == null ? Next.WAIT : Next.RUN_OP;
    }

    /** Handles broken links of an epoch; reports of links of earlier epochs are ignored. */
    public Next onLinkFailed(int of, String reason) {
        return guarded(
                () -> {
                    if (of == epoch) {
                        throw BoundaryLinks.linkFailed(reason);
                    }
                    return Next.WAIT;
                });
    }

    /** Runs one action that may fail. */
    private interface Act {
        Next run();
    }

    private Next guarded(Act act) {
        try {
            return act.run();
        } catch (DataPlaneException e) {
            LOG.warn("rank {} lost a link", rank, e);
            return standStill(new RankEvent.LinkLost(rank, epoch, reason(rank, work.place(), e)));
        } catch (NonFiniteException e) {
            LOG.error("rank {} met a number that is not finite", rank, e);
            String reason = reason(rank, work.place(), e);
            return standStill(new RankEvent.NonFinite(rank, epoch, e.step(), reason));
        } catch (DeviceLostException e) {
            String reason = reason(rank, work.place(), e);
            LOG.error("{}", reason);
            losses.onLost(rank, e, reason);
            tell(new RankEvent.Failed(rank, epoch, reason, false));
            return Next.END;
        } catch (RuntimeException
                | Error e) { // running out of memory is reported like every other end
            LOG.error("rank {} failed", rank, e);
            boolean repeats = (e instanceof DeviceException || e instanceof Error) && repeats(e);
            String reason = reason(rank, work.place(), e);
            tell(new RankEvent.Failed(rank, epoch, reason, repeats));
            return Next.END;
        }
    }

    /** Abandons the pass; the supervisor decides what to do next. */
    private Next standStill(RankEvent why) {
        passUnderWay = null;
        status.set(RankActivity.State.IDLE, StepKind.TRAIN, status.now().pass(), 0);
        tell(why);
        return Next.WAIT;
    }

    private static String reason(int rank, String place, Throwable e) {
        String what = e.getMessage() == null ? e.getClass().getSimpleName() : e.getMessage();
        return "rank %d (%s): %s".formatted(rank, place, what);
    }

    private Next take(RankCommand order) {
        return switch (order) {
            case RankCommand.Prepare prepare -> onPrepare(prepare);
            case RankCommand.Fence fence -> onFence(fence);
            case RankCommand.Stop _ -> Next.END;
            case RankCommand.BeginPass begin -> isOfNow(begin) ? onBeginPass(begin) : refuse(begin);
            case RankCommand.Commit commit -> isOfNow(commit) ? onCommit(commit) : refuse(commit);
            case RankCommand.Save save -> isOfNow(save) ? onSave(save) : refuse(save);
            case RankCommand.Resume resume -> isOfNow(resume) ? onResume(resume) : refuse(resume);
        };
    }

    private boolean isOfNow(RankCommand order) {
        return order.epoch() == epoch;
    }

    private Next refuse(RankCommand order) {
        LOG.warn("rank {} in epoch {} cannot follow {}", rank, epoch, order);
        return Next.WAIT;
    }

    // ---- recovery -------------------------------------------------------------------------------

    private void enter(int newEpoch) {
        epoch = newEpoch;
        passDone = null;
        saved = null;
        back = false;
        status.enter(newEpoch);
    }

    private Next onPrepare(RankCommand.Prepare prepare) {
        passUnderWay = null;
        work.disconnect();
        work.interrupt(prepare.cause());
        enter(prepare.epoch());
        long ready = uncommitted == null ? NOTHING : uncommitted.step();
        var held = new RankEvent.HeldState(rank, committedStep, ready);
        tell(
                new RankEvent.Prepared(
                        rank,
                        epoch,
                        held,
                        work.heldMirrors(),
                        locations.digests(),
                        work.plan().layout(),
                        work.folded()));
        return Next.WAIT;
    }

    private Next onResume(RankCommand.Resume resume) {
        if (back || restore(resume.start(), resume.links())) {
            tell(
                    new RankEvent.Resumed(
                            rank, epoch, work.device().name(), work.device().fingerprint()));
        }
        return Next.WAIT;
    }

    /**
     * Acts as if this rank had run the step that its state has applied, or whose gradients came
     * with it, because the commit may be repeated.
     */
    private void goOnFromWhatWasRestored() {
        committedStep = work.restoredStep();
        long ready = work.readyStep();
        uncommitted = ready < 0 ? null : new RankCommand.BeginPass(epoch, 0, StepKind.TRAIN, ready);
    }

    /** Reports the step that it resumes from, in which all ops took no time. */
    private void noteThatNothingWasComputed() {
        long[] now = new long[work.trainingOps()];
        Arrays.fill(now, System.nanoTime());
        times = new PassTimes(now, now.clone(), new long[now.length], new long[0]);
        lastTimings =
                new RankStep(
                        rank,
                        times.starts(),
                        times.ends(),
                        now[0],
                        now[0],
                        work.device().memory().peakBytes(),
                        List.of(),
                        0,
                        List.of(),
                        StepTraffic.NOTHING,
                        new long[0]);
    }

    private Next onFence(RankCommand.Fence fence) {
        LOG.error("rank {} in epoch {} ends: {}", rank, epoch, fence.reason());
        return Next.END;
    }

    // ---- steps ----------------------------------------------------------------------------------

    private Next onBeginPass(RankCommand.BeginPass begin) {
        RankEvent.PassDone done = passDone;
        if (done != null && done.pass() == begin.pass()) {
            tell(done);
            return Next.WAIT;
        }
        if (begin.equals(passUnderWay)) {
            return Next.RUN_OP;
        }
        passUnderWay = begin;
        waits = false;
        uncommitted = null; // left over from a pass that is run again, if any
        heapBytesAtBegin = threads.getCurrentThreadAllocatedBytes();
        work.begin(begin);
        return Next.RUN_OP;
    }

    private Next advance() {
        RankCommand.BeginPass begin = passUnderWay;
        if (begin == null) {
            return Next.WAIT;
        }
        if (work.isFinished()) {
            return finish(begin);
        }
        OpInterpreter ops = work.interpreter();
        ops.moveCollectives();
        if (!waits || work.computesNext()) { // checking again is no progress
            note(begin, RankActivity.State.COMPUTING);
        }
        Progress progress = work.advance();
        waits = progress != Progress.DONE && progress != Progress.AGAIN;
        return switch (progress) {
            case DONE, AGAIN -> Next.RUN_OP;
            case WAITS_FOR_FRAME -> {
                note(begin, RankActivity.State.WAITING_FOR_FRAME);
                yield ops.collectives().areUnderWay() ? Next.RETRY_LINK : Next.WAIT;
            }
            case WAITS_FOR_CREDIT -> {
                note(begin, RankActivity.State.WAITING_FOR_CREDIT);
                yield ops.collectives().areUnderWay() ? Next.RETRY_LINK : Next.WAIT;
            }
            case WAITS_FOR_REPLICAS -> {
                note(begin, RankActivity.State.WAITING_FOR_MEMBERS);
                status.explain(ops.collectives()::describe);
                yield Next.RETRY_LINK;
            }
            case WAITS_FOR_LINK -> {
                note(begin, RankActivity.State.WAITING_FOR_LINK);
                yield Next.RETRY_LINK;
            }
        };
    }

    private Next finish(RankCommand.BeginPass begin) {
        var result = work.result();
        heapBytesOfPass = threads.getCurrentThreadAllocatedBytes() - heapBytesAtBegin;
        passUnderWay = null;
        if (begin.kind() == StepKind.TRAIN) {
            uncommitted = begin;
            times = work.interpreter().times(); // a recovery before the commit discards them
            sent = work.sent();
        }
        note(begin, RankActivity.State.IDLE);
        passDone = new RankEvent.PassDone(rank, epoch, begin.pass(), result);
        tell(passDone);
        return Next.WAIT;
    }

    private Next onCommit(RankCommand.Commit commit) {
        RankStep done = lastTimings;
        if (done != null && committedStep == commit.step()) {
            tell(new RankEvent.StepDone(rank, epoch, committedStep, done));
            return Next.WAIT;
        }
        if (uncommitted == null || uncommitted.step() != commit.step()) {
            throw new IllegalStateException(
                    "commit of step %d: expected gradients of that step, got %s"
                            .formatted(commit.step(), uncommitted));
        }
        note(uncommitted, RankActivity.State.UPDATING);
        long start = System.nanoTime();
        work.update(commit);
        long end = System.nanoTime();
        note(uncommitted, RankActivity.State.IDLE);
        uncommitted = null;
        committedStep = commit.step();
        lastTimings =
                new RankStep(
                        rank,
                        times.starts(),
                        times.ends(),
                        start,
                        end,
                        work.device().memory().peakBytes(),
                        work.usesOfMemory(),
                        heapBytesOfPass,
                        work.traffic(),
                        sent,
                        times.collectives(),
                        times.copies());
        tell(new RankEvent.StepDone(rank, epoch, committedStep, lastTimings));
        return Next.WAIT;
    }

    private Next onSave(RankCommand.Save save) {
        RankEvent.Saved before = saved;
        if (before != null && before.step() == save.step()) {
            tell(before);
            return Next.WAIT;
        }
        status.set(RankActivity.State.SAVING, StepKind.TRAIN, save.step(), 0);
        try {
            saved = new RankEvent.Saved(rank, epoch, save.step(), work.save(save.step(), epoch));
            tell(saved);
        } catch (RuntimeException e) {
            LOG.warn("rank {} could not save step {}", rank, save.step(), e);
            String reason = String.valueOf(e.getMessage());
            tell(new RankEvent.SaveFailed(rank, epoch, save.step(), reason));
        }
        status.set(RankActivity.State.IDLE, StepKind.TRAIN, save.step(), 0);
        return Next.WAIT;
    }

    private void note(RankCommand.BeginPass begin, RankActivity.State state) {
        status.set(state, begin.kind(), begin.pass(), work.position());
    }

    /**
     * Frees everything and reports it, even if that fails: the run would wait until its deadline.
     */
    @Override
    public void close() {
        try {
            work.close();
        } catch (RuntimeException e) {
            LOG.warn("rank {} could not close everything", rank, e);
        } finally {
            tell(new RankEvent.Stopped(rank, epoch));
        }
    }
}
