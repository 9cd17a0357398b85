package dev.penstock.actors.rank;

import akka.actor.typed.ActorRef;
import akka.actor.typed.Behavior;
import akka.actor.typed.PostStop;
import akka.actor.typed.javadsl.AbstractBehavior;
import akka.actor.typed.javadsl.ActorContext;
import akka.actor.typed.javadsl.Behaviors;
import akka.actor.typed.javadsl.Receive;
import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.FrameListener;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;

/**
 * Owns one device and runs a rank's program on it, on a pinned thread of its own: a {@link
 * RankRunner} with a mailbox. Each rank has one, beside its {@link StageActor}. It runs one op per
 * message, so that stop and fault messages are never starved.
 */
public final class TensorShardActor extends AbstractBehavior<TensorShardActor.Command> {
    /** The messages that a shard understands. */
    public sealed interface Command {}

    /** A command of the supervisor to which these events belong, handed on by the stage actor. */
    public record Order(RankCommand order, ActorRef<RankEvent> events) implements Command {}

    private record RunOp() implements Command {}

    /** By which a rank knows whom it obeys. */
    private record Supervisor(ActorRef<RankEvent> events) implements Consumer<RankEvent> {
        @Override
        public void accept(RankEvent event) {
            events.tell(event);
        }
    }

    private record LinkMoved() implements Command {}

    /** The links of this epoch failed. */
    private record LinkFailed(int epoch, String reason) implements Command {}

    private static final RunOp RUN_OP = new RunOp();
    private static final LinkMoved LINK_MOVED = new LinkMoved();

    /** The poller drains a full log within microseconds; a longer nap would be idle time. */
    private static final long LINK_NAP_NANOS = 20_000;

    /** After so many naps in a row the peer is probably not connected: look once a millisecond. */
    private static final int MANY_NAPS = 500;

    private static final long LONG_NAP_NANOS = 1_000_000;

    private final RankRunner runner;
    private boolean runOpQueued;
    private int naps;

    private TensorShardActor(
            ActorContext<Command> context,
            RankAssignment birth,
            RankResources resources,
            RankStatus status,
            ActorRef<RankEvent> events) {
        super(context);
        ActorRef<Command> self = context.getSelf();
        this.runner =
                new RankRunner(
                        birth,
                        resources,
                        status,
                        new Supervisor(events),
                        epoch -> new ToSelf(self, epoch));
    }

    /** Opens the device and everything on it, on the actor's own thread. */
    public static Behavior<Command> create(
            RankAssignment birth,
            RankResources resources,
            RankStatus status,
            ActorRef<RankEvent> events) {
        return Behaviors.setup(
                context -> {
                    // its thread is pinned: the dispatcher gives it to no other actor
                    Thread.currentThread().setName(resources.plan().nameOf(birth.rank()));
                    try {
                        return new TensorShardActor(context, birth, resources, status, events);
                    } catch (RuntimeException | Error e) {
                        RankRunner.tellFailedStart(birth, resources, e, events::tell);
                        return Behaviors.stopped();
                    }
                });
    }

    @Override
    public Receive<Command> createReceive() {
        return newReceiveBuilder()
                .onMessage(Command.class, this::onCommand)
                .onSignal(PostStop.class, _ -> onPostStop())
                .build();
    }

    private Behavior<Command> onCommand(Command command) {
        return switch (command) {
            case RunOp _ -> onRunOp();
            case LinkMoved _ -> follow(runner.onLinkMoved());
            case LinkFailed(int of, String reason) -> follow(runner.onLinkFailed(of, reason));
            case Order(RankCommand order, var events) ->
                    follow(runner.onOrder(order, new Supervisor(events)));
        };
    }

    private Behavior<Command> onRunOp() {
        runOpQueued = false;
        RankRunner.Next next = runner.runOp();
        if (next == RankRunner.Next.RUN_OP) {
            naps = 0;
        }
        return follow(next);
    }

    private Behavior<Command> follow(RankRunner.Next next) {
        switch (next) {
            case WAIT -> {}
            case RUN_OP -> queueRunOp();
            case RETRY_LINK -> retryLink();
            case END -> {
                return Behaviors.stopped();
            }
        }
        return this;
    }

    /** Naps on its own thread: Akka's timers are only as fine as the tick of its scheduler. */
    private void retryLink() {
        LockSupport.parkNanos(++naps < MANY_NAPS ? LINK_NAP_NANOS : LONG_NAP_NANOS);
        queueRunOp();
    }

    private void queueRunOp() {
        if (!runOpQueued) {
            runOpQueued = true;
            getContext().getSelf().tell(RUN_OP);
        }
    }

    private Behavior<Command> onPostStop() {
        runner.close();
        return this;
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
