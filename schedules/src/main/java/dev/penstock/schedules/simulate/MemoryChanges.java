package dev.penstock.schedules.simulate;

import dev.penstock.schedules.ir.LayerRange;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/** Puts the changes of what a rank holds on the clock of a timeline. */
final class MemoryChanges implements LiveUnits.Changes {
    /** What is more or less from a time on. */
    private record Change(long nanos, int position, long activations, long parameters) {}

    private final Timeline timeline;
    private final MemoryCurve.Sizes sizes;
    private final int rank;
    private final List<Change> changes = new ArrayList<>();

    MemoryChanges(
            Timeline timeline, PassKind passKind, MemoryCurve.Sizes sizes, RankProgram program) {
        this.timeline = timeline;
        this.sizes = sizes;
        this.rank = program.rank();
        var ran = new RankProgram(rank, program.ops().subList(0, timeline.opsRun(rank)));
        new LiveUnits(timeline.schedule().shape(), passKind, ran, LiveUnits.Ends.of(program), this);
        gathers(ran.ops());
        // stable: an op's start stays before its end
        changes.sort(Comparator.comparingLong(Change::nanos).thenComparingInt(Change::position));
    }

    @Override
    public void opened(int position, WorkUnit unit, boolean inputHeld) {
        long more = sizes.activations(unit) - (inputHeld ? sizes.input(unit) : 0);
        changes.add(new Change(timeline.startNanos(rank, position), position, more, 0));
    }

    @Override
    public void closed(int position, WorkUnit unit, boolean inputKept) {
        long less = sizes.activations(unit) - (inputKept ? sizes.input(unit) : 0);
        changes.add(new Change(timeline.endNanos(rank, position), position, -less, 0));
    }

    private void gathers(List<Op> ops) {
        for (int i = 0; i < ops.size(); i++) {
            switch (ops.get(i)) {
                case Op.GatherParameters(int stage, LayerRange layers) ->
                        changes.add(
                                new Change(
                                        timeline.startNanos(rank, i),
                                        i,
                                        0,
                                        sizes.parameters(stage, layers)));
                case Op.ReleaseParameters(int stage, LayerRange layers) ->
                        changes.add(
                                new Change(
                                        timeline.endNanos(rank, i),
                                        i,
                                        0,
                                        -sizes.parameters(stage, layers)));
                case Op.UnitOp _, Op.Overlapped _, Op.ReduceGradients _ -> {}
            }
        }
    }

    MemoryCurve curve() {
        var points = new ArrayList<MemoryCurve.Point>();
        long activations = 0;
        long parameters = 0;
        for (Change change : changes) {
            activations += change.activations;
            parameters += change.parameters;
            points.add(new MemoryCurve.Point(change.nanos, activations, parameters));
        }
        return new MemoryCurve(rank, points);
    }
}
