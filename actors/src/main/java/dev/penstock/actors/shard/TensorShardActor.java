package dev.penstock.actors.shard;

import akka.actor.typed.ActorRef;
import akka.actor.typed.Behavior;
import akka.actor.typed.PostStop;
import akka.actor.typed.javadsl.AbstractBehavior;
import akka.actor.typed.javadsl.ActorContext;
import akka.actor.typed.javadsl.Behaviors;
import akka.actor.typed.javadsl.Receive;
import akka.actor.typed.javadsl.TimerScheduler;
import com.sun.management.ThreadMXBean;
import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.FrameListener;
import dev.penstock.actors.spi.NonFiniteException;
import dev.penstock.actors.spi.RankStep;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.cuda.device.DeviceException;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Owns one device and runs a rank's program on it, on a pinned thread of its own. One op per
 * message, so that stop and fault messages are never starved.
 */
public final class TensorShardActor extends AbstractBehavior<TensorShardActor.Command> {
    /** What a shard understands. */
    public sealed interface Command {}

    /** An order of the supervisor, handed on by the stage actor. */
    public record Order(RankOrder order) implements Command {}

    private record RunOp() implements Command {}

    private record LinkMoved() implements Command {}

    /** Of this epoch's links; what earlier ones still say means nothing. */
    private record LinkFailed(int epoch, String reason) implements Command {}

    private static final Logger LOG = LoggerFactory.getLogger(TensorShardActor.class);
    private static final RunOp RUN_OP = new RunOp();
    private static final LinkMoved LINK_MOVED = new LinkMoved();

    /** A full log is drained by the poller within microseconds; a longer nap would be idle time. */
    private static final long LINK_NAP_NANOS = 20_000;

    /** After this many naps in a row the peer is not there at all: look once a millisecond. */
    private static final int MANY_NAPS = 500;

    private static final Duration LINK_RETRY = Duration.ofMillis(1);

    private final int rank;
    private final ActorRef<RankEvent> events;
    private final RankStatus status;
    private final TimerScheduler<Command> timers;
    private final ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    private final RankWork work;

    private int epoch;
    private long committedStep;
    private RankOrder.@Nullable BeginPass passUnderWay;
    private RankOrder.@Nullable BeginPass uncommitted;
    private @Nullable RankStep lastTimings;
    private long[] opStarts = {};
    private long[] opEnds = {};
    private boolean runOpQueued;
    private int naps;
    private long heapBytesAtBegin;
    private long heapBytesOfPass;

    private TensorShardActor(
            ActorContext<Command> context,
            TimerScheduler<Command> timers,
            RankBirth birth,
            RankResources resources,
            RankStatus status,
            ActorRef<RankEvent> events) {
        super(context);
        this.timers = timers;
        this.rank = birth.rank();
        this.status = status;
        this.events = events;
        enter(birth.epoch());
        this.work = new RankWork(rank, resources, birth.start(), birth.mirrors());
        try {
            work.connect(
                    epoch, birth.mirrors(), birth.link(), new ToSelf(context.getSelf(), epoch));
            goOnFromWhatWasRestored();
        } catch (RuntimeException | Error e) {
            work.close();
            throw e;
        }
        events.tell(new RankEvent.Opened(rank, epoch, work.deviceName(), work.deviceFingerprint()));
    }

    /** Opens the device and everything on it, on the actor's own thread. */
    public static Behavior<Command> create(
            RankBirth birth,
            RankResources resources,
            RankStatus status,
            ActorRef<RankEvent> events) {
        return Behaviors.setup(
                context ->
                        Behaviors.withTimers(
                                timers -> {
                                    try {
                                        return new TensorShardActor(
                                                context, timers, birth, resources, status, events);
                                    } catch (RuntimeException | Error e) {
                                        int rank = birth.rank();
                                        LOG.error("rank {} cannot start", rank, e);
                                        String reason = reason(rank, "start", e);
                                        int epoch = birth.epoch();
                                        events.tell(
                                                new RankEvent.Failed(rank, epoch, reason, true));
                                        events.tell(new RankEvent.Stopped(rank, epoch));
                                        return Behaviors.stopped();
                                    }
                                }));
    }

    @Override
    public Receive<Command> createReceive() {
        return newReceiveBuilder()
                .onMessage(Command.class, this::onCommand)
                .onSignal(PostStop.class, _ -> onPostStop())
                .build();
    }

    private Behavior<Command> onCommand(Command command) {
        try {
            return switch (command) {
                case RunOp _ -> onRunOp();
                case LinkMoved _ -> onLinkMoved();
                case LinkFailed(int of, String reason) -> {
                    if (of == epoch) {
                        throw OpInterpreter.linkFailed(reason);
                    }
                    yield this;
                }
                case Order(RankOrder order) -> onOrder(order);
            };
        } catch (DataPlaneException e) {
            LOG.warn("rank {} lost a link", rank, e);
            return standStill(new RankEvent.LinkLost(rank, epoch, reason(rank, work.place(), e)));
        } catch (NonFiniteException e) {
            LOG.error("rank {} met a number that is not finite", rank, e);
            String reason = reason(rank, work.place(), e);
            return standStill(new RankEvent.NonFinite(rank, epoch, e.step(), reason));
        } catch (RuntimeException | Error e) { // out of memory is told like every other end
            LOG.error("rank {} failed", rank, e);
            boolean repeats = e instanceof DeviceException || e instanceof Error;
            String reason = reason(rank, work.place(), e);
            events.tell(new RankEvent.Failed(rank, epoch, reason, repeats));
            return Behaviors.stopped();
        }
    }

    /** Abandons the pass; what to do next is the supervisor's decision. */
    private Behavior<Command> standStill(RankEvent why) {
        passUnderWay = null;
        status.set(RankActivity.State.IDLE, StepKind.TRAIN, status.now().pass(), 0);
        events.tell(why);
        return this;
    }

    private static String reason(int rank, String place, Throwable e) {
        String what = e.getMessage() == null ? e.getClass().getSimpleName() : e.getMessage();
        return "rank %d (%s): %s".formatted(rank, place, what);
    }

    private Behavior<Command> onOrder(RankOrder order) {
        if (order.epoch() < epoch) {
            return refuse(order);
        }
        return switch (order) {
            case RankOrder.Prepare prepare -> onPrepare(prepare);
            case RankOrder.Fence fence -> onFence(fence);
            case RankOrder.Stop _ -> Behaviors.stopped();
            case RankOrder.BeginPass begin -> isOfNow(begin) ? onBeginPass(begin) : refuse(begin);
            case RankOrder.Commit commit -> isOfNow(commit) ? onCommit(commit) : refuse(commit);
            case RankOrder.Save save -> isOfNow(save) ? onSave(save) : refuse(save);
            case RankOrder.Resume resume -> isOfNow(resume) ? onResume(resume) : refuse(resume);
        };
    }

    private boolean isOfNow(RankOrder order) {
        return order.epoch() == epoch;
    }

    private Behavior<Command> refuse(RankOrder order) {
        LOG.warn("rank {} in epoch {} refuses {}", rank, epoch, order);
        return this;
    }

    // ---- recovery -------------------------------------------------------------------------------

    private void enter(int newEpoch) {
        epoch = newEpoch;
        status.enter(newEpoch);
    }

    private Behavior<Command> onPrepare(RankOrder.Prepare prepare) {
        passUnderWay = null;
        work.disconnect();
        enter(prepare.epoch());
        long ready = uncommitted == null ? -1 : uncommitted.step();
        var held = new RankEvent.HeldState(rank, committedStep, ready);
        events.tell(new RankEvent.Prepared(rank, epoch, held, work.heldMirrors()));
        return this;
    }

    private Behavior<Command> onResume(RankOrder.Resume resume) {
        work.restore(resume.start(), resume.mirrors());
        work.connect(
                epoch, resume.mirrors(), resume.link(), new ToSelf(getContext().getSelf(), epoch));
        if (!(resume.start() instanceof RankStart.Kept)) {
            goOnFromWhatWasRestored();
        }
        events.tell(new RankEvent.Resumed(rank, epoch));
        return this;
    }

    /**
     * As if this rank had done the step that its state is after, or whose gradients came with it:
     * the commit may be told again. It computed nothing of it, so all its ops took no time.
     */
    private void goOnFromWhatWasRestored() {
        committedStep = work.restoredStep();
        long ready = work.readyStep();
        uncommitted = ready < 0 ? null : new RankOrder.BeginPass(epoch, 0, StepKind.TRAIN, ready);
        opStarts = work.opStartNanos();
        Arrays.fill(opStarts, System.nanoTime());
        opEnds = opStarts.clone();
        lastTimings =
                new RankStep(rank, opStarts, opEnds, opStarts[0], opStarts[0], work.peakBytes(), 0);
    }

    private Behavior<Command> onFence(RankOrder.Fence fence) {
        LOG.error("rank {} in epoch {} ends: {}", rank, epoch, fence.reason());
        return Behaviors.stopped();
    }

    // ---- steps ----------------------------------------------------------------------------------

    private Behavior<Command> onBeginPass(RankOrder.BeginPass begin) {
        passUnderWay = begin;
        uncommitted = null; // of a pass that is run again, if of any
        heapBytesAtBegin = threads.getCurrentThreadAllocatedBytes();
        work.begin(begin.kind(), begin.step(), begin.pass());
        queueRunOp();
        return this;
    }

    private Behavior<Command> onRunOp() {
        runOpQueued = false;
        RankOrder.BeginPass begin = passUnderWay;
        if (begin == null) {
            return this;
        }
        if (work.isFinished()) {
            return finish(begin);
        }
        note(begin, RankActivity.State.COMPUTING);
        Progress progress = work.advance();
        switch (progress) {
            case DONE, AGAIN -> {
                naps = 0;
                queueRunOp();
            }
            case WAITS_FOR_FRAME -> note(begin, RankActivity.State.WAITING_FOR_FRAME);
            case WAITS_FOR_CREDIT -> note(begin, RankActivity.State.WAITING_FOR_CREDIT);
            case WAITS_FOR_LINK -> {
                note(begin, RankActivity.State.WAITING_FOR_LINK);
                retryLink();
            }
        }
        return this;
    }

    private void retryLink() {
        if (++naps < MANY_NAPS) {
            LockSupport.parkNanos(LINK_NAP_NANOS);
            queueRunOp();
        } else {
            timers.startSingleTimer(RUN_OP, LINK_RETRY);
        }
    }

    private Behavior<Command> onLinkMoved() {
        queueRunOp();
        return this;
    }

    private void queueRunOp() {
        if (!runOpQueued && passUnderWay != null) {
            runOpQueued = true;
            getContext().getSelf().tell(RUN_OP);
        }
    }

    private Behavior<Command> finish(RankOrder.BeginPass begin) {
        var result = work.result();
        heapBytesOfPass = threads.getCurrentThreadAllocatedBytes() - heapBytesAtBegin;
        passUnderWay = null;
        if (begin.kind() == StepKind.TRAIN) {
            uncommitted = begin;
            opStarts = work.opStartNanos(); // a recovery before the commit forgets them
            opEnds = work.opEndNanos();
        }
        note(begin, RankActivity.State.IDLE);
        events.tell(new RankEvent.PassDone(rank, epoch, begin.pass(), result));
        return this;
    }

    private Behavior<Command> onCommit(RankOrder.Commit commit) {
        RankStep done = lastTimings;
        if (done != null && committedStep == commit.step()) {
            events.tell(new RankEvent.StepDone(rank, epoch, committedStep, done));
            return this;
        }
        if (uncommitted == null || uncommitted.step() != commit.step()) {
            throw new IllegalStateException(
                    "commit of step %d: expected gradients of that step, got %s"
                            .formatted(commit.step(), uncommitted));
        }
        note(uncommitted, RankActivity.State.UPDATING);
        long start = System.nanoTime();
        work.update(commit.step(), commit.clipFactor());
        long end = System.nanoTime();
        note(uncommitted, RankActivity.State.IDLE);
        uncommitted = null;
        committedStep = commit.step();
        lastTimings =
                new RankStep(rank, opStarts, opEnds, start, end, work.peakBytes(), heapBytesOfPass);
        events.tell(new RankEvent.StepDone(rank, epoch, committedStep, lastTimings));
        return this;
    }

    private Behavior<Command> onSave(RankOrder.Save save) {
        status.set(RankActivity.State.SAVING, StepKind.TRAIN, save.step(), 0);
        try {
            events.tell(new RankEvent.Saved(rank, epoch, save.step(), work.save(save.step())));
        } catch (RuntimeException e) {
            LOG.warn("rank {} could not save step {}", rank, save.step(), e);
            String reason = String.valueOf(e.getMessage());
            events.tell(new RankEvent.SaveFailed(rank, epoch, save.step(), reason));
        }
        status.set(RankActivity.State.IDLE, StepKind.TRAIN, save.step(), 0);
        return this;
    }

    private Behavior<Command> onPostStop() {
        try {
            work.close();
        } catch (RuntimeException e) {
            LOG.warn("rank {} could not close everything", rank, e);
        } finally {
            events.tell(
                    new RankEvent.Stopped(rank, epoch)); // else the run would wait for the deadline
        }
        return this;
    }

    private void note(RankOrder.BeginPass begin, RankActivity.State state) {
        status.set(state, begin.kind(), begin.pass(), work.position());
    }

    /** Turns the poller's calls into messages. */
    private record ToSelf(ActorRef<Command> self, int epoch) implements FrameListener {
        @Override
        public void onFrame(FrameKey key) {
            self.tell(LINK_MOVED);
        }

        @Override
        public void onCredit(ChannelKey channel) {
            self.tell(LINK_MOVED);
        }

        @Override
        public void onFailure(DataPlaneException failure) {
            self.tell(new LinkFailed(epoch, String.valueOf(failure.getMessage())));
        }
    }
}
