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
import dev.penstock.actors.spi.RankStep;
import dev.penstock.actors.spi.StepKind;
import java.lang.management.ManagementFactory;
import java.time.Duration;
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

    private record LinkFailed(String reason) implements Command {}

    private static final Logger LOG = LoggerFactory.getLogger(TensorShardActor.class);
    private static final RunOp RUN_OP = new RunOp();
    private static final LinkMoved LINK_MOVED = new LinkMoved();

    /** A full log is drained by the poller within microseconds; a longer nap would be idle time. */
    private static final long LINK_NAP_NANOS = 20_000;

    /** After this many naps in a row the peer is not there at all: look once a millisecond. */
    private static final int MANY_NAPS = 500;

    private static final Duration LINK_RETRY = Duration.ofMillis(1);

    private final int rank;
    private final int epoch;
    private final ActorRef<RankEvent> events;
    private final RankStatus status;
    private final TimerScheduler<Command> timers;
    private final ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    private final RankWork work;

    private RankOrder.@Nullable BeginPass passUnderWay;
    private RankOrder.@Nullable BeginPass uncommitted;
    private RankEvent.@Nullable StepDone lastStepDone;
    private boolean runOpQueued;
    private int naps;
    private long heapBytesAtBegin;
    private long heapBytesOfPass;

    private TensorShardActor(
            ActorContext<Command> context,
            TimerScheduler<Command> timers,
            int rank,
            int epoch,
            RankResources resources,
            RankStatus status,
            ActorRef<RankEvent> events) {
        super(context);
        this.timers = timers;
        this.rank = rank;
        this.epoch = epoch;
        this.status = status;
        this.events = events;
        this.work = new RankWork(rank, resources, new ToSelf(context.getSelf()));
        events.tell(new RankEvent.Opened(rank, work.deviceName(), work.deviceFingerprint()));
    }

    /** Opens the device and everything on it, on the actor's own thread. */
    public static Behavior<Command> create(
            int rank,
            int epoch,
            RankResources resources,
            RankStatus status,
            ActorRef<RankEvent> events) {
        return Behaviors.setup(
                context ->
                        Behaviors.withTimers(
                                timers -> {
                                    try {
                                        return new TensorShardActor(
                                                context, timers, rank, epoch, resources, status,
                                                events);
                                    } catch (RuntimeException | Error e) {
                                        LOG.error("rank {} cannot start", rank, e);
                                        events.tell(failed(rank, "start", e));
                                        events.tell(new RankEvent.Stopped(rank));
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
                case LinkFailed(String reason) -> throw OpInterpreter.linkFailed(reason);
                case Order(RankOrder order) -> onOrder(order);
            };
        } catch (RuntimeException | Error e) { // out of memory is told like every other end
            LOG.error("rank {} failed", rank, e);
            events.tell(failed(rank, work.place(), e));
            return Behaviors.stopped();
        }
    }

    private static RankEvent.Failed failed(int rank, String place, Throwable e) {
        String what = e.getMessage() == null ? e.getClass().getSimpleName() : e.getMessage();
        return new RankEvent.Failed(rank, "rank %d (%s): %s".formatted(rank, place, what));
    }

    private Behavior<Command> onOrder(RankOrder order) {
        if (order.epoch() != epoch) {
            LOG.warn(
                    "rank {} refuses an order of epoch {}, own epoch {}",
                    rank,
                    order.epoch(),
                    epoch);
            return this;
        }
        return switch (order) {
            case RankOrder.BeginPass begin -> onBeginPass(begin);
            case RankOrder.Commit commit -> onCommit(commit);
            case RankOrder.Save save -> onSave(save);
            case RankOrder.Stop _ -> Behaviors.stopped();
        };
    }

    private Behavior<Command> onBeginPass(RankOrder.BeginPass begin) {
        passUnderWay = begin;
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
        }
        note(begin, RankActivity.State.IDLE);
        events.tell(new RankEvent.PassDone(rank, epoch, begin.pass(), result));
        return this;
    }

    private Behavior<Command> onCommit(RankOrder.Commit commit) {
        RankEvent.StepDone done = lastStepDone;
        if (done != null && done.step() == commit.step()) {
            events.tell(done);
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
        var timings =
                new RankStep(
                        rank,
                        work.opStartNanos(),
                        work.opEndNanos(),
                        start,
                        end,
                        work.peakBytes(),
                        heapBytesOfPass);
        lastStepDone = new RankEvent.StepDone(rank, epoch, commit.step(), timings);
        events.tell(lastStepDone);
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
            events.tell(new RankEvent.Stopped(rank)); // else the run would wait for the deadline
        }
        return this;
    }

    private void note(RankOrder.BeginPass begin, RankActivity.State state) {
        status.set(state, begin.kind(), begin.pass(), work.position());
    }

    /** Turns the poller's calls into messages. */
    private record ToSelf(ActorRef<Command> self) implements FrameListener {
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
            self.tell(new LinkFailed(String.valueOf(failure.getMessage())));
        }
    }
}
