package dev.penstock.runtime.model;

import dev.penstock.schedules.generate.Seq1F1B;
import dev.penstock.schedules.generate.TeraPipe;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import java.util.ArrayList;
import java.util.List;

/** Orders of work for pipelines of one stage per rank. */
final class Orders {
    private Orders() {}

    /** One forward, one backward; with slices Seq1F1B. */
    static Schedule oneForwardOneBackward(int stages, int microBatches, int slices) {
        return Seq1F1B.schedule(PipelineShape.of(stages, microBatches, slices));
    }

    /** All forwards, then all backwards, last in first out: TeraPipe, or GPipe's original. */
    static Schedule lastInFirstOut(int stages, int microBatches, int slices) {
        return TeraPipe.schedule(PipelineShape.of(stages, microBatches, slices));
    }

    /** All forwards, then all backwards in the order of 1F1B: FIFO GPipe, also over slices. */
    static Schedule gpipe(int stages, int microBatches, int slices) {
        Schedule turns = oneForwardOneBackward(stages, microBatches, slices);
        List<RankProgram> programs = new ArrayList<>();
        for (RankProgram program : turns.programs()) {
            List<Op> ops = new ArrayList<>();
            program.ops().stream().filter(op -> op instanceof Op.Forward).forEach(ops::add);
            program.ops().stream().filter(op -> op instanceof Op.Backward).forEach(ops::add);
            programs.add(new RankProgram(program.rank(), ops));
        }
        return new Schedule("gpipe", turns.shape(), turns.placement(), programs);
    }
}
