package dev.penstock.actors.simulation;

import dev.penstock.actors.collective.WaitingTime;
import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.FrameListener;
import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.rank.RankActivity;
import dev.penstock.actors.rank.RankAssignment;
import dev.penstock.actors.rank.RankCommand;
import dev.penstock.actors.rank.RankEvent;
import dev.penstock.actors.rank.RankResources;
import dev.penstock.actors.rank.RankRunner;
import dev.penstock.actors.rank.RankStatus;
import dev.penstock.actors.spi.RankSteps;
import dev.penstock.actors.spi.StepKind;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * A real {@link RankRunner} where a stage and a shard actor would be: one mailbox, one message at a
 * time, and leases that come also while an op lasts.
 */
final class SimRank implements WaitingTime {
    private static final long LEASE_RENEWALS = 6;

    /** Seconds. */
    private static final int SOON = 10;

    /** After so many naps in a row, somebody else is probably gone. */
    private static final int MANY_NAPS = 20;

    final RankAssignment birth;
    final SimProcess process;
    final NodeInfo node;
    private final World world;
    private final RankResources resources;
    private final Consumer<SimRank> end;
    private final RankStatus status;

    /** Where an op, or the work of another order, may wait for others. */
    private final Optional<Fibre> fibre;

    private final Deque<Supplier<RankRunner.Next>> mailbox = new ArrayDeque<>();
    private final Object leases = new Object();
    private @Nullable RankRunner runner;
    private int naps;
    private RankRunner.Next next = RankRunner.Next.WAIT;
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
            Simulation simulation,
            SimProcess process,
            NodeInfo node,
            RankAssignment birth,
            RankResources resources,
            Consumer<RankEvent> supervisor,
            Consumer<SimRank> end) {
        this.world = simulation.world;
        this.process = process;
        this.node = node;
        this.birth = birth;
        this.resources = resources;
        this.supervisor = supervisor;
        this.supervisedSince = birth.epoch();
        this.end = end;
        this.status = new RankStatus(this);
        this.fibre =
                simulation.scenario.waitsInStages() ? Optional.of(new Fibre()) : Optional.empty();
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
            var activity =
                    new RankActivity(
                            now.state(),
                            now.kind(),
                            now.pass(),
                            now.position(),
                            world.now() - now.sinceNanoTime(),
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
        int ops = resources.plan().program(StepKind.TRAIN, birth.rank()).ops().size();
        int times = done.timings().opStartNanos().length;
        boolean samePlan = !resources.plan().isWired(); // else its supervisor has to match them
        if (samePlan && times != ops) {
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
        status.hear(order);
        if (order instanceof RankCommand.Prepare) {
            requireToLeave(order.epoch(), SOON);
        }
        put(() -> running().onOrder(order, new Answers(this, from)));
    }

    /**
     * Whatever it waits for, in an op or between. Seconds that it stands still do not count, but
     * for one each time.
     */
    private void requireToLeave(int epoch, int seconds) {
        boolean follows = ended || stuck || epoch() >= epoch;
        if (!follows && seconds == 0) {
            world.violated("%s does not prepare for epoch %d", this, epoch);
        } else if (!follows) {
            process.after(World.SECOND, () -> requireToLeave(epoch, seconds - 1));
        }
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
        Supplier<RankRunner.Next> message = mailbox.remove();
        if (fibre.isEmpty()) {
            next = message.get();
            turned();
        } else if (fibre.get().begin(() -> next = message.get())) {
            turned();
        }
    }

    private void turned() {
        busy = false;
        if (!ended) {
            follow(next);
            ifWaiting();
        }
    }

    @Override
    public long nanos() {
        return world.now();
    }

    /** In an op or another order: this thread stands still, and only this one. */
    @Override
    public void pass(int turn) {
        long most =
                Math.min(20 * World.MILLISECOND, (World.MILLISECOND / 20) << Math.min(turn, 10));
        process.after(world.between(0, most), this::goOnInOp);
        fibre.orElseThrow().rest();
    }

    private void goOnInOp() {
        if (!stuck && fibre.orElseThrow().goOn()) {
            turned();
        }
    }

    void endFibre() {
        fibre.ifPresent(Fibre::end);
    }

    private void follow(RankRunner.Next next) {
        switch (next) {
            case WAIT -> {}
            case RUN_OP -> {
                naps = 0;
                queueRunOp();
            }
            case RETRY_LINK -> process.after(nap(), this::queueRunOp);
            case END -> {
                ended = true;
                running().close();
                end.accept(this);
            }
        }
    }

    /** Whoever waits for members in a grid may do so until it is ordered out of the epoch. */
    private long nap() {
        boolean lasts = !resources.plan().grid().isPipelineAlone() && ++naps > MANY_NAPS;
        return world.between(0, lasts ? 20 * World.MILLISECOND : World.MILLISECOND);
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

    @Override
    public String toString() {
        return "rank %d of epoch %d on %s".formatted(birth.rank(), birth.epoch(), process);
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
