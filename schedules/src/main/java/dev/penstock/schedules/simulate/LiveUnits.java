package dev.penstock.schedules.simulate;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.WorkUnit;

import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.IntStream;

/**
 * Walks the program of one rank and counts what is live. Ops that make no sense are passed over.
 */
final class LiveUnits {
    /** Is told of every unit that is live from now on, or no more, in program order. */
    interface Changes {
        Changes IGNORED =
                new Changes() {
                    @Override
                    public void opened(int position, WorkUnit unit, boolean inputHeld) {}

                    @Override
                    public void closed(int position, WorkUnit unit, boolean inputKept) {}
                };

        /** With the start of the op. */
        void opened(int position, WorkUnit unit, boolean inputHeld);

        /** With the end of the op. */
        void closed(int position, WorkUnit unit, boolean inputKept);
    }

    /**
     * With what the units of stages end.
     *
     * @param withBackward stages that have backwards; units of others end with their forward
     * @param withWeight stages that have backwards for the weights; units of others end with their
     *     backward for the input
     */
    record Ends(BitSet withBackward, BitSet withWeight) {
        static Ends of(RankProgram program) {
            var ends = new Ends(new BitSet(), new BitSet());
            for (Op op : program.ops()) {
                for (Op.Compute part : op.computations()) {
                    if (!(part instanceof Op.Forward)) {
                        ends.withBackward.set(part.stage());
                    }
                    if (part instanceof Op.BackwardWeight) {
                        ends.withWeight.set(part.stage());
                    }
                }
            }
            return ends;
        }
    }

    private final PipelineShape shape;
    private final Changes changes;
    private final boolean training;
    private final RankProgram program;
    private final Map<Integer, Stage> stages = new TreeMap<>();

    private final Ends ends;

    /** By number of the unit. */
    private final BitSet recomputed = new BitSet();

    private int live;
    private int peak;
    private int peakPosition;

    LiveUnits(PipelineShape shape, PassKind passKind, RankProgram program) {
        this(shape, passKind, program, Ends.of(program), Changes.IGNORED);
    }

    /**
     * @param program the beginning of a program
     * @param ends of the whole
     */
    LiveUnits(
            PipelineShape shape,
            PassKind passKind,
            RankProgram program,
            Ends ends,
            Changes changes) {
        this.shape = shape;
        this.changes = changes;
        this.training = passKind == PassKind.TRAINING;
        this.ends = ends;
        this.program = program;
        for (Op op : program.ops()) {
            if (op instanceof Op.Recompute(WorkUnit unit) && shape.contains(unit)) {
                recomputed.set(shape.indexOf(unit));
            }
        }
        for (int i = 0; i < program.ops().size(); i++) {
            if (program.ops().get(i) instanceof Op.ActivationOp op && shape.contains(op.unit())) {
                move(i, op);
            }
            for (Op.Compute op : program.ops().get(i).computations()) {
                if (shape.contains(op.unit())) {
                    run(i, op);
                }
            }
        }
    }

    MemoryProfile.RankPeak rankPeak() {
        return new MemoryProfile.RankPeak(program.rank(), peak, peakPosition);
    }

    List<StagePeak> stagePeaks() {
        return stages.entrySet().stream()
                .map(stage -> stage.getValue().peak(program.rank(), stage.getKey()))
                .toList();
    }

    private Stage stage(int number) {
        return new Stage(training && ends.withBackward().get(number));
    }

    private void move(int position, Op.ActivationOp op) {
        Stage stage = stages.computeIfAbsent(op.stage(), this::stage);
        switch (op) {
            case Op.Offload(WorkUnit unit) -> {
                if (stage.offload(unit)) {
                    live--;
                    changes.closed(position, unit, false);
                }
            }
            case Op.Reload(WorkUnit unit) -> {
                open(position, stage, unit);
                stage.endReload(unit);
            }
        }
    }

    private void run(int position, Op.Compute op) {
        Stage stage = stages.computeIfAbsent(op.stage(), this::stage);
        switch (op) {
            case Op.Forward(WorkUnit unit) -> {
                open(position, stage, unit);
                if (!stage.training) {
                    close(position, stage, unit);
                } else if (recomputed.get(shape.indexOf(unit)) && stage.park(unit)) {
                    live--;
                    changes.closed(position, unit, true);
                }
            }
            case Op.Recompute(WorkUnit unit) -> open(position, stage, unit);
            case Op.Backward(WorkUnit unit) -> {
                stage.beginBackward(unit);
                close(position, stage, unit);
            }
            case Op.BackwardInput(WorkUnit unit) -> {
                stage.beginBackward(unit);
                if (ends.withWeight().get(unit.stage())) {
                    stage.awaitWeight();
                } else {
                    close(position, stage, unit);
                }
            }
            case Op.BackwardWeight(WorkUnit unit) -> {
                stage.endWeight();
                close(position, stage, unit);
            }
        }
    }

    private void open(int position, Stage stage, WorkUnit unit) {
        boolean parked = stage.holdsInput(unit);
        if (!stage.open(unit)) {
            return;
        }
        live++;
        changes.opened(position, unit, parked);
        if (live > peak) {
            peak = live;
            peakPosition = position;
        }
    }

    private void close(int position, Stage stage, WorkUnit unit) {
        if (stage.close(unit)) {
            live--;
            changes.closed(position, unit, false);
        }
    }

    /** The counts of one stage. */
    private final class Stage {
        /** Whether units live until their backward. */
        private final boolean training;

        /**
         * No BitSet: one that clears its highest bit looks back for the next, through all slices of
         * a long generated text.
         */
        private final boolean[] live = new boolean[shape.microBatches() * shape.slices()];

        private final BitSet parkedUnits = new BitSet();
        private final BitSet awayUnits = new BitSet();
        private final int[] livePerSlice = new int[shape.slices()];
        private final int[] peakPerSlice = new int[shape.slices()];

        /** By micro-batch: live units in training, forwards done in a forward-only program. */
        private final int[] held = new int[shape.microBatches()];

        private final int[] backwards = new int[shape.microBatches()];
        private int units;
        private int peakUnits;
        private int microBatches;
        private int peakMicroBatches;
        private int backwardMicroBatches;
        private int peakBackwardMicroBatches;
        private int peakParked;
        private int peakAway;
        private int awaitingWeight;
        private int peakAwaitingWeight;

        Stage(boolean training) {
            this.training = training;
        }

        /**
         * A forward begins, again if the unit was parked. Returns whether the unit was not live
         * before.
         */
        boolean open(WorkUnit unit) {
            int index = indexInStage(unit);
            if (live[index]) {
                return false;
            }
            live[index] = true;
            units++;
            livePerSlice[unit.slice()]++;
            if (parkedUnits.get(index)) {
                parkedUnits.clear(index);
            } else if (!awayUnits.get(index) && held[unit.microBatch()]++ == 0) {
                microBatches++;
            }
            peakUnits = Math.max(peakUnits, units);
            peakPerSlice[unit.slice()] =
                    Math.max(peakPerSlice[unit.slice()], livePerSlice[unit.slice()]);
            peakMicroBatches = Math.max(peakMicroBatches, microBatches);
            return true;
        }

        /** All but the input is let go. Returns whether the unit was live. */
        boolean park(WorkUnit unit) {
            int index = indexInStage(unit);
            if (!live[index]) {
                return false;
            }
            live[index] = false;
            units--;
            livePerSlice[unit.slice()]--;
            parkedUnits.set(index);
            peakParked = Math.max(peakParked, parkedUnits.cardinality());
            return true;
        }

        /** Everything goes to the host. Returns whether the unit was live. */
        boolean offload(WorkUnit unit) {
            int index = indexInStage(unit);
            if (!live[index]) {
                return false;
            }
            live[index] = false;
            units--;
            livePerSlice[unit.slice()]--;
            awayUnits.set(index);
            peakAway = Math.max(peakAway, awayUnits.cardinality());
            return true;
        }

        void endReload(WorkUnit unit) {
            awayUnits.clear(indexInStage(unit));
        }

        boolean holdsInput(WorkUnit unit) {
            return parkedUnits.get(indexInStage(unit));
        }

        void awaitWeight() {
            awaitingWeight++;
            peakAwaitingWeight = Math.max(peakAwaitingWeight, awaitingWeight);
        }

        void endWeight() {
            awaitingWeight = Math.max(0, awaitingWeight - 1);
        }

        void beginBackward(WorkUnit unit) {
            int microBatch = unit.microBatch();
            if (backwards[microBatch]++ == 0) {
                backwardMicroBatches++;
                peakBackwardMicroBatches = Math.max(peakBackwardMicroBatches, backwardMicroBatches);
            }
            if (backwards[microBatch] == shape.slices()) {
                backwardMicroBatches--;
            }
        }

        /** The last op of a unit ends. Returns whether the unit was live. */
        boolean close(WorkUnit unit) {
            int index = indexInStage(unit);
            if (!live[index]) {
                return false;
            }
            live[index] = false;
            units--;
            livePerSlice[unit.slice()]--;
            int microBatch = unit.microBatch();
            if (training) {
                held[microBatch]--;
            } else if (held[microBatch] == shape.slices()) {
                held[microBatch] = 0;
            }
            if (held[microBatch] == 0) {
                microBatches--;
            }
            return true;
        }

        private int indexInStage(WorkUnit unit) {
            return unit.microBatch() * shape.slices() + unit.slice();
        }

        StagePeak peak(int rank, int stage) {
            return new StagePeak(
                    rank,
                    stage,
                    peakUnits,
                    IntStream.of(peakPerSlice).boxed().toList(),
                    peakMicroBatches,
                    peakBackwardMicroBatches,
                    peakParked,
                    peakAwaitingWeight,
                    peakAway);
        }
    }
}
