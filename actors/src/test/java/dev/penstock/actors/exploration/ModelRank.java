package dev.penstock.actors.exploration;

import dev.penstock.actors.rank.LocationDigests;
import dev.penstock.actors.rank.RankAssignment;
import dev.penstock.actors.rank.RankCommand;
import dev.penstock.actors.rank.RankEvent;
import dev.penstock.actors.rank.StateSource;
import dev.penstock.actors.spi.RankSteps;
import dev.penstock.actors.spi.StepResult;
import dev.penstock.actors.spi.TensorNorm;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalDouble;
import org.jspecify.annotations.Nullable;

/**
 * A rank as {@code RankRunner} is one to its supervisor, without device and links. What it has
 * trained is the list of the updates that it has applied.
 */
final class ModelRank {
    private static final int NOTHING = -1;

    /** An update of the optimizer. */
    record Update(long step, double clipFactor) {}

    final int rank;
    final int birth;
    private final int process;
    private int epoch;

    /** The supervisor whom it obeys. */
    private int supervisor;

    private List<Update> applied = List.of();
    private long ready = NOTHING;
    private boolean back;
    private RankCommand.@Nullable BeginPass passUnderWay;
    private RankEvent.@Nullable PassDone passDone;
    private RankEvent.@Nullable Saved saved;

    ModelRank(ModelWorld world, int process, RankAssignment birth, int supervisor) {
        this.process = process;
        this.rank = birth.rank();
        this.birth = birth.epoch();
        this.epoch = birth.epoch();
        this.supervisor = supervisor;
        comeBack(world, birth.start());
        tell(world, new RankEvent.Opened(rank, epoch, "device", "kernels"));
    }

    int epoch() {
        return epoch;
    }

    int supervisor() {
        return supervisor;
    }

    List<Update> applied() {
        return applied;
    }

    private void comeBack(ModelWorld world, StateSource start) {
        switch (start) {
            case StateSource.Kept _ -> {}
            case StateSource.Fresh _ -> restore(List.of());
            case StateSource.FromCheckpoint(long step) -> restore(world.checkpoint(step));
            case StateSource.FromMirror _ -> throw new IllegalStateException("no mirrors here");
        }
        back = true;
        world.opensLinks(this);
    }

    private void restore(List<Update> state) {
        applied = state;
        ready = NOTHING;
    }

    private void tell(ModelWorld world, RankEvent event) {
        world.says(process, supervisor, new Word.Event(event));
    }

    /** Returns whether it lives on. */
    boolean take(ModelWorld world, RankCommand order, int from) {
        if (order.epoch() > epoch) {
            supervisor = from;
        } else if (order.epoch() < epoch || isAnothers(order, from)) {
            world.says(process, from, new Word.Event(new RankEvent.Refused(rank, epoch)));
            return true;
        }
        boolean leads =
                order instanceof RankCommand.Prepare
                        || order instanceof RankCommand.Stop
                        || order instanceof RankCommand.Fence;
        if (!leads && order.epoch() != epoch) {
            return true;
        }
        switch (order) {
            case RankCommand.Prepare prepare -> onPrepare(world, prepare.epoch());
            case RankCommand.Resume resume -> {
                if (!back) {
                    comeBack(world, resume.start());
                }
                tell(world, new RankEvent.Resumed(rank, epoch, "device", "kernels"));
            }
            case RankCommand.BeginPass begin -> onBeginPass(world, begin);
            case RankCommand.Commit commit -> onCommit(world, commit);
            case RankCommand.Save save -> onSave(world, save.step());
            case RankCommand.Stop _, RankCommand.Fence _ -> {
                tell(world, new RankEvent.Stopped(rank, epoch));
                return false;
            }
        }
        return true;
    }

    private boolean isAnothers(RankCommand order, int from) {
        boolean ends = order instanceof RankCommand.Stop || order instanceof RankCommand.Fence;
        return !ends && from != supervisor;
    }

    private void onPrepare(ModelWorld world, int newEpoch) {
        epoch = newEpoch;
        passUnderWay = null;
        passDone = null;
        saved = null;
        back = false;
        var held = new RankEvent.HeldState(rank, applied.size(), ready);
        world.holds(epoch, held);
        // it opens no links: orders that differ only in places would be other states
        tell(world, new RankEvent.Prepared(rank, epoch, held, List.of(), LocationDigests.NONE, ""));
    }

    private void onBeginPass(ModelWorld world, RankCommand.BeginPass begin) {
        RankEvent.PassDone done = passDone;
        if (done != null && done.pass() == begin.pass()) {
            tell(world, done);
        } else if (!begin.equals(passUnderWay)) {
            world.require(back, "%s begins a pass without links", this);
            world.require(
                    applied.size() == begin.step() - 1, "%s begins step %d", this, begin.step());
            passUnderWay = begin;
            ready = NOTHING;
            world.begins(this, begin.pass());
        }
    }

    /** Whether it is in the middle of a pass. */
    boolean trains() {
        return passUnderWay != null;
    }

    /** Whether the tensors of the others let it end its pass. */
    boolean mayFinish(ModelWorld world) {
        RankCommand.BeginPass begin = passUnderWay;
        return begin != null && world.haveAllBegun(epoch, begin.pass());
    }

    /** No two passes have the same gradients, so no two commits have the same factor. */
    void finish(ModelWorld world) {
        RankCommand.BeginPass begin = passUnderWay;
        if (begin == null) {
            throw new IllegalStateException("no pass");
        }
        passUnderWay = null;
        ready = begin.step();
        double norm = 10.0 * epoch + begin.pass();
        boolean last = rank == ModelWorld.RANKS - 1;
        var result =
                new StepResult(
                        last ? OptionalDouble.of(norm) : OptionalDouble.empty(),
                        List.of(new TensorNorm("t" + rank, norm)));
        RankEvent.PassDone done = new RankEvent.PassDone(rank, epoch, begin.pass(), result);
        passDone = done;
        tell(world, done);
    }

    private void onCommit(ModelWorld world, RankCommand.Commit commit) {
        if (applied.size() != commit.step()) {
            world.require(ready == commit.step(), "%s has no gradients for %s", this, commit);
            world.require(
                    applied.size() == commit.step() - 1, "%s applies step %d", this, commit.step());
            List<Update> more = new ArrayList<>(applied);
            more.add(new Update(commit.step(), commit.clipFactor().orElseThrow()));
            applied = List.copyOf(more);
            ready = NOTHING;
        }
        long[] ops = new long[world.opsOf(rank)];
        tell(
                world,
                new RankEvent.StepDone(
                        rank, epoch, commit.step(), RankSteps.of(rank, ops, ops, 0, 0, 0, 0)));
    }

    private void onSave(ModelWorld world, long step) {
        RankEvent.Saved before = saved;
        if (before == null || before.step() != step) {
            before = new RankEvent.Saved(rank, epoch, step, List.of());
            saved = before;
            world.writes(this, step);
        }
        tell(world, before);
    }

    @Override
    public String toString() {
        return "rank %d of epoch %d after %s%s"
                .formatted(rank, epoch, applied, ready < 0 ? "" : " with gradients of " + ready);
    }
}
