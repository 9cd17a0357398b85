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
    private int live;
    private int peak;
    private int peakPosition;

    LiveUnits(PipelineShape shape, PassKind passKind, RankProgram program) {
        this.shape = shape;
        this.training = passKind == PassKind.TRAINING;
        this.program = program;
        for (int i = 0; i < program.ops().size(); i++) {
            if (program.ops().get(i) instanceof Op.Compute op && shape.contains(op.unit())) {
                run(i, op);
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
                live += stage.open(unit);
                if (live > peak) {
                    peak = live;
                    peakPosition = position;
                }
                if (!training) {
                    live -= stage.close(unit);
                }
            }
            case Op.Backward(WorkUnit unit) -> {
                stage.beginBackward(unit);
                live -= stage.close(unit);
            }
        }
    }

    /** The counts of one stage. */
    private final class Stage {
        private final BitSet liveUnits = new BitSet();
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

        /** A forward begins. Returns the number of units that are live since. */
        int open(WorkUnit unit) {
            int index = indexInStage(unit);
            if (liveUnits.get(index)) {
                return 0;
            }
            liveUnits.set(index);
            units++;
            livePerSlice[unit.slice()]++;
            if (held[unit.microBatch()]++ == 0) {
                microBatches++;
            }
            peakUnits = Math.max(peakUnits, units);
            peakPerSlice[unit.slice()] =
                    Math.max(peakPerSlice[unit.slice()], livePerSlice[unit.slice()]);
            peakMicroBatches = Math.max(peakMicroBatches, microBatches);
            return 1;
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
                    peakBackwardMicroBatches);
        }
    }
}
