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
    private final PipelineShape shape;
    private final boolean training;
    private final RankProgram program;
    private final Map<Integer, Stage> stages = new TreeMap<>();

    /** By number of the unit. */
    private final BitSet recomputed = new BitSet();

    private int live;
    private int peak;
    private int peakPosition;

    LiveUnits(PipelineShape shape, PassKind passKind, RankProgram program) {
        this.shape = shape;
        this.training = passKind == PassKind.TRAINING;
        this.program = program;
        for (Op op : program.ops()) {
            if (op instanceof Op.Recompute(WorkUnit unit) && shape.contains(unit)) {
                recomputed.set(shape.indexOf(unit));
            }
        }
        for (int i = 0; i < program.ops().size(); i++) {
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

    private void run(int position, Op.Compute op) {
        Stage stage = stages.computeIfAbsent(op.stage(), _ -> new Stage());
        switch (op) {
            case Op.Forward(WorkUnit unit) -> {
                opened(position, stage.open(unit));
                if (!training) {
                    live -= stage.close(unit);
                } else if (recomputed.get(shape.indexOf(unit))) {
                    live -= stage.park(unit);
                }
            }
            case Op.Recompute(WorkUnit unit) -> opened(position, stage.open(unit));
            case Op.Backward(WorkUnit unit) -> {
                stage.beginBackward(unit);
                live -= stage.close(unit);
            }
            case Op.BackwardInput(WorkUnit unit) -> {
                stage.beginBackward(unit);
                stage.awaitWeight();
            }
            case Op.BackwardWeight(WorkUnit unit) -> {
                stage.endWeight();
                live -= stage.close(unit);
            }
        }
    }

    private void opened(int position, int units) {
        live += units;
        if (live > peak) {
            peak = live;
            peakPosition = position;
        }
    }

    /** The counts of one stage. */
    private final class Stage {
        private final BitSet liveUnits = new BitSet();
        private final BitSet parkedUnits = new BitSet();
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
        private int awaitingWeight;
        private int peakAwaitingWeight;

        /**
         * A forward begins, again if the unit was parked. Returns the number of units that are live
         * since.
         */
        int open(WorkUnit unit) {
            int index = indexInStage(unit);
            if (liveUnits.get(index)) {
                return 0;
            }
            liveUnits.set(index);
            units++;
            livePerSlice[unit.slice()]++;
            if (parkedUnits.get(index)) {
                parkedUnits.clear(index);
            } else if (held[unit.microBatch()]++ == 0) {
                microBatches++;
            }
            peakUnits = Math.max(peakUnits, units);
            peakPerSlice[unit.slice()] =
                    Math.max(peakPerSlice[unit.slice()], livePerSlice[unit.slice()]);
            peakMicroBatches = Math.max(peakMicroBatches, microBatches);
            return 1;
        }

        /** All but the input is let go. Returns the number of units that are live no more. */
        int park(WorkUnit unit) {
            int index = indexInStage(unit);
            if (!liveUnits.get(index)) {
                return 0;
            }
            liveUnits.clear(index);
            units--;
            livePerSlice[unit.slice()]--;
            parkedUnits.set(index);
            peakParked = Math.max(peakParked, parkedUnits.cardinality());
            return 1;
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

        /** The last op of a unit ends. Returns the number of units that are live no more. */
        int close(WorkUnit unit) {
            int index = indexInStage(unit);
            if (!liveUnits.get(index)) {
                return 0;
            }
            liveUnits.clear(index);
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
            return 1;
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
                    peakAwaitingWeight);
        }
    }
}
