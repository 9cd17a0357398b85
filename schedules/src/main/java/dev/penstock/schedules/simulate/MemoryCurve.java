package dev.penstock.schedules.simulate;

import dev.penstock.schedules.ir.LayerRange;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/**
 * What a rank holds on its device over the time of a step: a step function. Units are held by the
 * rules of {@link StagePeak}, gathered parameters from the start of their gather to their release
 * or the end.
 *
 * @param points in the order of time; what a point says holds until the next. Several points at one
 *     time tell what changed one after another, so that the peak is among them
 */
public record MemoryCurve(int rank, List<Point> points) {
    public MemoryCurve {
        points = List.copyOf(points);
    }

    /**
     * What is held from a time on.
     *
     * @param activations of live units, and inputs of units that wait for their recompute
     * @param parameters that were gathered
     */
    public record Point(long nanos, long activations, long parameters) {
        /** Both together. */
        public long all() {
            return activations + parameters;
        }
    }

    /** What is held for what: bytes, or units. */
    public interface Sizes {
        /** One for each unit, nothing for an input alone, one for each gather. */
        Sizes UNITS =
                new Sizes() {
                    @Override
                    public long activations(WorkUnit unit) {
                        return 1;
                    }

                    @Override
                    public long input(WorkUnit unit) {
                        return 0;
                    }

                    @Override
                    public long parameters(int stage, LayerRange layers) {
                        return 1;
                    }
                };

        /** Of a live unit. */
        long activations(WorkUnit unit);

        /** Of a unit between its forward and its recompute. */
        long input(WorkUnit unit);

        /** Of gathered layers. */
        long parameters(int stage, LayerRange layers);
    }

    /**
     * The curve of every rank, in {@link Sizes#UNITS}; see {@link #of(Timeline, PassKind, Sizes)}.
     */
    public static List<MemoryCurve> of(Timeline timeline, PassKind passKind) {
        return of(timeline, passKind, Sizes.UNITS);
    }

    /** The curve of every rank; entry r is rank r. */
    public static List<MemoryCurve> of(Timeline timeline, PassKind passKind, Sizes sizes) {
        return timeline.schedule().programs().stream()
                .map(program -> new MemoryChanges(timeline, passKind, sizes, program).curve())
                .toList();
    }

    /** The most that is held at a time. */
    public long peak() {
        return points.stream().mapToLong(Point::all).max().orElse(0);
    }

    /** The most activations that are held at a time. */
    public long peakActivations() {
        return points.stream().mapToLong(Point::activations).max().orElse(0);
    }

    /** The last point that holds at a time; nothing is held before the first. */
    public Point at(long nanos) {
        return points.stream()
                .filter(point -> point.nanos() <= nanos)
                .reduce((_, later) -> later)
                .orElse(new Point(nanos, 0, 0));
    }

    /** Puts the changes of what a rank holds on the clock of a timeline. */
    private static final class MemoryChanges implements LiveUnits.Changes {
        /** What is more or less from a time on. */
        private record Change(long nanos, int position, long activations, long parameters) {}

        private final Timeline timeline;
        private final MemoryCurve.Sizes sizes;
        private final int rank;
        private final List<Change> changes = new ArrayList<>();

        MemoryChanges(
                Timeline timeline,
                PassKind passKind,
                MemoryCurve.Sizes sizes,
                RankProgram program) {
            this.timeline = timeline;
            this.sizes = sizes;
            this.rank = program.rank();
            var ran = new RankProgram(rank, program.ops().subList(0, timeline.opsRun(rank)));
            new LiveUnits(
                    timeline.schedule().shape(), passKind, ran, LiveUnits.Ends.of(program), this);
            gathers(ran.ops());
            // stable: an op's start stays before its end
            changes.sort(
                    Comparator.comparingLong(Change::nanos).thenComparingInt(Change::position));
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
}
