package dev.penstock.actors.rank;

import akka.actor.typed.ActorRef;
import akka.actor.typed.Behavior;
import akka.actor.typed.DispatcherSelector;
import akka.actor.typed.Terminated;
import akka.actor.typed.javadsl.AbstractBehavior;
import akka.actor.typed.javadsl.ActorContext;
import akka.actor.typed.javadsl.Behaviors;
import akka.actor.typed.javadsl.Receive;
import akka.actor.typed.javadsl.TimerScheduler;
import dev.penstock.actors.serialization.WireMessage;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.Timeouts;
import java.time.Duration;
import java.util.function.Consumer;

/**
 * The control side of a rank: spawns and watches the rank's one shard, hands orders on, and renews
 * the rank's lease from a thread that never computes, so that a long op is not taken for a death.
 */
public final class StageActor extends AbstractBehavior<StageActor.Command> {
    /** The messages that a stage actor understands. */
    public sealed interface Command extends WireMessage {}

    /**
     * A command for the rank.
     *
     * @param events the events of the supervisor that gives it
     */
    public record Order(RankCommand order, ActorRef<RankEvent> events) implements Command {}

    private record RenewLease() implements Command {}

    /** Leases are renewed this often per lease time, so that one late renewal is no death. */
    private static final int RENEWALS_PER_LEASE = 6;

    private final int rank;
    private final RunPlan plan;
    private final RankStatus status = new RankStatus();
    private final Consumer<String> fenced;
    private final ActorRef<TensorShardActor.Command> shard;
    private ActorRef<RankEvent> events;
    private int epoch;

    private StageActor(
            ActorContext<Command> context,
            TimerScheduler<Command> timers,
            RankAssignment birth,
            RankResources resources,
            ActorRef<RankEvent> events) {
        super(context);
        this.rank = birth.rank();
        this.epoch = birth.epoch();
        this.plan = resources.plan();
        this.events = events;
        this.fenced = resources.fenced();
        this.shard =
                context.spawn(
                        TensorShardActor.create(birth, resources, status, events),
                        "shard-" + plan.grid().placeOf(rank).tensor(),
                        DispatcherSelector.fromConfig("penstock.shard-dispatcher"));
        context.watch(shard);
        timers.startTimerWithFixedDelay(new RenewLease(), Duration.ZERO, renewal(plan.timeouts()));
    }

    /** Returns an interval that also reports a stall in time where the lease is long. */
    private static Duration renewal(Timeouts timeouts) {
        Duration forLease = timeouts.lease().dividedBy(RENEWALS_PER_LEASE);
        Duration forStalls = timeouts.stallReport().dividedBy(RENEWALS_PER_LEASE);
        return forLease.compareTo(forStalls) < 0 ? forLease : forStalls;
    }

    /** Creates the actor of one rank of the plan, in this process. */
    public static Behavior<Command> create(
            RankAssignment birth, RankResources resources, ActorRef<RankEvent> events) {
        return Behaviors.setup(
                context ->
                        Behaviors.withTimers(
                                timers ->
                                        new StageActor(context, timers, birth, resources, events)));
    }

    @Override
    public Receive<Command> createReceive() {
        return newReceiveBuilder()
                .onMessage(Command.class, this::onCommand)
                .onSignal(Terminated.class, _ -> Behaviors.stopped())
                .build();
    }

    private Behavior<Command> onCommand(Command command) {
        switch (command) {
            case Order(RankCommand order, ActorRef<RankEvent> from) -> onOrder(order, from);
            case RenewLease _ -> onRenewLease();
        }
        return this;
    }

    private void onOrder(RankCommand order, ActorRef<RankEvent> from) {
        if (order.epoch() > epoch) { // whoever raised it supervises the run
            epoch = order.epoch();
            events = from;
        }
        status.hear(order);
        shard.tell(new TensorShardActor.Order(order, from));
        if (order instanceof RankCommand.Fence fence && fence.epoch() == epoch) {
            fenced.accept(fence.reason());
        }
    }

    private void onRenewLease() {
        events.tell(new RankEvent.Lease(rank, status.epoch(), activity()));
    }

    private RankActivity activity() {
        RankStatus.Moment now = status.now();
        return new RankActivity(
                now.state(),
                now.kind(),
                now.pass(),
                now.position(),
                System.nanoTime() - now.sinceNanoTime(),
                ActivityText.of(status.planOr(plan), rank, now));
    }
}
