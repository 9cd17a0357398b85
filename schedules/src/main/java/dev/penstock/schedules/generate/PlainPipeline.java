package dev.penstock.schedules.generate;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.ArrayList;
import java.util.List;

/** A pipeline with stage r on rank r, its ranks' orders under construction. */
final class PlainPipeline {
    /** Writes one rank's order. */
    interface RankOrder {
        void write(int rank, Program program);
    }

    /** The ops of one rank, appended in order. */
    static final class Program {
        private final int stage;
        private final List<Op> ops = new ArrayList<>();

        private Program(int stage) {
            this.stage = stage;
        }

        void forward(int microBatch, int slice) {
            ops.add(new Op.Forward(new WorkUnit(stage, microBatch, slice)));
        }

        void backward(int microBatch, int slice) {
            ops.add(new Op.Backward(new WorkUnit(stage, microBatch, slice)));
        }
    }

    private PlainPipeline() {}

    static Schedule schedule(String name, PipelineShape shape, RankOrder order) {
        if (shape.chunks() != 1) {
            throw new IllegalArgumentException(
                    "%s runs one stage per rank, got %d chunks; try 1"
                            .formatted(name, shape.chunks()));
        }
        var programs = new ArrayList<RankProgram>();
        for (int rank = 0; rank < shape.ranks(); rank++) {
            var program = new Program(rank);
            order.write(rank, program);
            programs.add(new RankProgram(rank, program.ops));
        }
        return new Schedule(name, shape, Placement.loop(shape.ranks(), 1), programs);
    }

    static void requireWholeSequences(String name, String sliced, PipelineShape shape) {
        if (shape.slices() != 1) {
            throw new IllegalArgumentException(
                    "%s runs whole sequences, got %d slices; try 1 slice, or %s"
                            .formatted(name, shape.slices(), sliced));
        }
    }
}
