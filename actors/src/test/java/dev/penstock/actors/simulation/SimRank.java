package dev.penstock.actors.simulation;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.FrameListener;
import dev.penstock.actors.rank.RankActivity;
import dev.penstock.actors.rank.RankAssignment;
import dev.penstock.actors.rank.RankCommand;
import dev.penstock.actors.rank.RankEvent;
import dev.penstock.actors.rank.RankResources;
import dev.penstock.actors.rank.RankRunner;
import dev.penstock.actors.rank.RankStatus;
import dev.penstock.actors.spi.RankSteps;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * A real {@link RankRunner} where a stage and a shard actor would be: one mailbox, one message at a
 * time, and leases that come also while an op lasts.
 */
final class SimRank {
    private static final long LEASE_RENEWALS = 6;

    final RankAssignment birth;
    final SimProcess process;
    private final World world;
    private final RankResources resources;
    private final Consumer<SimRank> end;
    private final RankStatus status = new RankStatus();
    private final Deque<Supplier<RankRunner.Next>> mailbox = new ArrayDeque<>();
    private final Object leases = new Object();
    private @Nullable RankRunner runner;
    private RankStatus.Moment moment = status.now();
    private long momentSince;
    private boolean busy;
    private boolean runOpQueued;
    private boolean ended;
    private boolean stuck;

    /** Who is told that this rank lives. */
    private Consumer<RankEvent> supervisor;

    private int supervisedSince;

    /** What it last said it held. */
    RankEvent.@Nullable Prepared prepared;

    boolean fenced;

    SimRank(
            World world,
            SimProcess process,
            RankAssignment birth,
            RankResources resources,
            Consumer<RankEvent> supervisor,
            Consumer<SimRank> end) {
        this.world = world;
        this.process = process;
        this.birth = birth;
        this.resources = resources;
        this.supervisor = supervisor;
        this.supervisedSince = birth.epoch();
        this.end = end;
        this.momentSince = world.now();
        renewLease();
        process.after(world.between(0, 20 * World.MILLISECOND), this::open);
    }

    private void open() {
        try {
            var first = supervisor;
            runner = new RankRunner(birth, resources, status, new Answers(this, first), Ears::new);
            ifWaiting();
        } catch (RuntimeException e) {
            var first = supervisor;
            RankRunner.tellFailedStart(birth, resources, e, event -> say(event, first));
            ended = true;
            end.accept(this);
        }
    }

    boolean hasEnded() {
        return ended;
    }

    int epoch() {
        return status.epoch();
    }

    /** The thread hangs in what it does, for ever; leases go on. */
    void getStuck() {
        stuck = true;
    }

    boolean isStuck() {
        return stuck;
    }

    boolean hangsInAnOp() {
        return stuck && !ended && status.now().state().isWork();
    }

    private void renewLease() {
        if (!ended) {
            var now = status.now();
            if (!now.equals(moment)) {
                moment = now;
                momentSince = world.now();
            }
            var activity =
                    new RankActivity(
                            now.state(),
                            now.kind(),
                            now.pass(),
                            now.position(),
                            world.now() - momentSince,
                            now.state().toString());
            var lease = new RankEvent.Lease(birth.rank(), status.epoch(), activity);
            var told = supervisor;
            process.send(leases, () -> told.accept(lease));
            long renewal = resources.plan().timeouts().lease().toNanos() / LEASE_RENEWALS;
            process.after(process.clock.until(renewal), this::renewLease);
        }
    }

    private void say(RankEvent event, Consumer<RankEvent> to) {
        RankEvent said = event;
        switch (event) {
            case RankEvent.Prepared now -> prepared = now;
            case RankEvent.StepDone done -> {
                requireATimeForEveryOp(done);
                said = timeless(done);
            }
            case RankEvent.Failed failed when !failed.reason().contains("(start)") ->
                    world.violated("a rank fails by itself: %s", failed.reason());
            case RankEvent.Opened _,
                    RankEvent.PassDone _,
                    RankEvent.Saved _,
                    RankEvent.SaveFailed _,
                    RankEvent.Resumed _,
                    RankEvent.Lease _,
                    RankEvent.CheckpointDamaged _,
                    RankEvent.Refused _,
                    RankEvent.LinkLost _,
                    RankEvent.NonFinite _,
                    RankEvent.Failed _,
                    RankEvent.Stopped _ -> {}
        }
        RankEvent sent = said;
        process.send(this, () -> to.accept(sent));
    }

    private void requireATimeForEveryOp(RankEvent.StepDone done) {
        int ops = resources.plan().training().programs().get(birth.rank()).ops().size();
        int times = done.timings().opStartNanos().length;
        if (times != ops) {
            world.violated("%s has times of %d ops, the step has %d", this, times, ops);
        }
    }

    /** Real nanoseconds would make a seed do different things. */
    private static RankEvent timeless(RankEvent.StepDone done) {
        long[] none = new long[done.timings().opStartNanos().length];
        var timings = RankSteps.of(done.rank(), none, none, 0, 0, 0, 0);
        return new RankEvent.StepDone(done.rank(), done.epoch(), done.step(), timings);
    }

    // ---- the mailbox ----------------------------------------------------------------------------

    void order(RankCommand order, Consumer<RankEvent> from) {
        if (order.epoch() > supervisedSince) {
            supervisedSince = order.epoch();
            supervisor = from;
        }
        put(() -> running().onOrder(order, new Answers(this, from)));
    }

    /** By which a rank knows whom it obeys. */
    private record Answers(SimRank rank, Consumer<RankEvent> supervisor)
            implements Consumer<RankEvent> {
        @Override
        public void accept(RankEvent event) {
            rank.say(event, supervisor);
        }
    }

    /** An order of an epoch that this rank has left. */
    void hearOld(RankCommand order) {
        if (!ended && runner != null && order.epoch() < epoch()) {
            order(
                    order,
                    answer -> {
                        if (!(answer instanceof RankEvent.Refused)) {
                            world.violated("an old order is answered: %s", answer);
                        }
                    });
        }
    }

    private RankRunner running() {
        if (runner == null) {
            throw new IllegalStateException("not open");
        }
        return runner;
    }

    private void put(Supplier<RankRunner.Next> message) {
        mailbox.add(message);
        ifWaiting();
    }

    private void ifWaiting() {
        if (!busy && !ended && runner != null && !mailbox.isEmpty()) {
            busy = true;
            long most = world.chance(0.002) ? World.SECOND : World.MILLISECOND / 2;
            process.after(world.between(0, most), this::turn);
        }
    }

    private void turn() {
        if (stuck) {
            return;
        }
        busy = false;
        if (!ended) {
            follow(mailbox.remove().get());
            ifWaiting();
        }
    }

    private void follow(RankRunner.Next next) {
        switch (next) {
            case WAIT -> {}
            case RUN_OP -> queueRunOp();
            case RETRY_LINK -> process.after(world.between(0, World.MILLISECOND), this::queueRunOp);
            case END -> {
                ended = true;
                running().close();
                end.accept(this);
            }
        }
    }

    private void queueRunOp() {
        if (!runOpQueued) {
            runOpQueued = true;
            put(
                    () -> {
                        runOpQueued = false;
                        return running().runOp();
                    });
        }
    }

    private final class Ears implements FrameListener {
        private final int epoch;

        Ears(int epoch) {
            this.epoch = epoch;
        }

        @Override
        public void onFrame(FrameKey key) {
            put(() -> running().onLinkMoved());
        }

        @Override
        public void onCredit(ChannelKey channel) {
            put(() -> running().onLinkMoved());
        }

        @Override
        public void onFailure(DataPlaneException failure) {
            put(() -> running().onLinkFailed(epoch, String.valueOf(failure.getMessage())));
        }
    }
}
