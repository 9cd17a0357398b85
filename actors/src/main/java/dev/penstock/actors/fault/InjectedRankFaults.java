package dev.penstock.actors.fault;

import static java.lang.foreign.ValueLayout.JAVA_FLOAT_UNALIGNED;

import dev.penstock.actors.fault.Fault.Event;
import dev.penstock.actors.fault.Fault.InjectNan;
import dev.penstock.actors.fault.Fault.KillRank;
import dev.penstock.actors.fault.Fault.PauseRank;
import dev.penstock.actors.fault.Fault.Place;
import dev.penstock.actors.fault.Fault.SlowStage;
import dev.penstock.actors.fault.FaultInjector.Numbered;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.WorkUnit;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The faults of one rank; only training steps are harmed. */
final class InjectedRankFaults implements RankFaults {
    private final FaultInjector injector;
    private final List<Numbered<KillRank>> kills;
    private final List<Numbered<PauseRank>> pauses;
    private final List<Numbered<InjectNan>> poisons;
    private final List<Numbered<SlowStage>> slow;
    private long step = -1;
    private boolean begun;

    InjectedRankFaults(
            FaultInjector injector,
            List<Numbered<KillRank>> kills,
            List<Numbered<PauseRank>> pauses,
            List<Numbered<InjectNan>> poisons,
            List<Numbered<SlowStage>> slow) {
        this.injector = injector;
        this.kills = kills;
        this.pauses = pauses;
        this.poisons = poisons;
        this.slow = slow;
    }

    @Override
    public void beginPass(StepKind kind, long newStep) {
        step = kind == StepKind.TRAIN ? newStep : -1;
        begun = false;
        injector.atStep(step);
    }

    @Override
    public void beforeOp(Op op) {
        if (!begun) {
            begun = true;
            happenAt(new Place.Begin(), step);
        }
        happenAt(new Place.BeforeOp(op), step);
        for (Op.Compute part : op.computations()) {
            if (!part.equals(op)) { // half of an overlapped pair
                happenAt(new Place.BeforeOp(part), step);
            }
        }
    }

    @Override
    public void amongOps(StepMoment moment) {
        happenAt(new Place.At(moment), step);
    }

    @Override
    public void at(StepMoment moment, long ofStep) {
        happenAt(new Place.At(moment), ofStep);
    }

    private void happenAt(Place place, long ofStep) {
        for (var each : pauses) {
            if (each.fault().place().equals(place) && isDue(each, ofStep)) {
                injector.harm().pause(each.fault().length());
            }
        }
        for (var each : kills) {
            if (each.fault().place().equals(place) && isDue(each, ofStep)) {
                injector.harm().kill();
            }
        }
    }

    @Override
    public void afterComputation(Op op, long startNanos) {
        for (var each : slow) {
            SlowStage stage = each.fault();
            if (stage.stage() == op.stage() && stage.steps().contains(step)) {
                long nanos = System.nanoTime() - startNanos;
                double whole = Math.max(nanos * stage.factor(), stage.atLeast().toNanos());
                ProcessHarm.ONE_THREAD.pause(Duration.ofNanos((long) (whole - nanos)));
            }
        }
    }

    @Override
    public void beforeForward(WorkUnit unit, @Nullable Tensor input) {
        poison(unit, input);
    }

    @Override
    public void afterForward(WorkUnit unit, @Nullable Tensor output) {
        if (unit.stage() == 0) {
            poison(unit, output);
        }
    }

    private void poison(WorkUnit unit, @Nullable Tensor activation) {
        if (activation == null) {
            return;
        }
        for (var each : poisons) {
            InjectNan nan = each.fault();
            boolean here = nan.stage() == unit.stage() && nan.microBatch() == unit.microBatch();
            if (here && isDue(each, step)) {
                activation.staging().set(JAVA_FLOAT_UNALIGNED, 0, Float.NaN);
                activation.buffer().beginToDevice(Float.BYTES);
                activation.buffer().kernelsAwaitCopy();
            }
        }
    }

    private boolean isDue(Numbered<? extends Event> each, long ofStep) {
        return each.fault().step() == ofStep && injector.claim(each);
    }
}
