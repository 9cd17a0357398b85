package dev.penstock.schedules.generate.base;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.ir.ProgramWriter;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.ArrayList;
import java.util.List;

/** A pipeline with its ranks' orders under construction. */
public final class Pipeline {
    /** Writes the program of one rank. */
    public interface ForRank {
        void write(int rank, Program program);
    }

    /** The ops of one rank, appended in order; its chunk c is the c-th of its stages, rising. */
    public static final class Program {
        private final List<Integer> stages;
        private final ProgramWriter ops;

        private Program(List<Integer> stages, ProgramWriter ops) {
            this.stages = stages;
            this.ops = ops;
        }

        /** The unit of one of this rank's chunks. */
        WorkUnit unit(int chunk, int microBatch, int slice) {
            return new WorkUnit(stages.get(chunk), microBatch, slice);
        }

        public void forward(int chunk, int microBatch, int slice) {
            ops.add(new Op.Forward(unit(chunk, microBatch, slice)));
        }

        public void backward(int chunk, int microBatch, int slice) {
            ops.add(new Op.Backward(unit(chunk, microBatch, slice)));
        }

        public void backwardInput(int chunk, int microBatch, int slice) {
            ops.add(new Op.BackwardInput(unit(chunk, microBatch, slice)));
        }

        public void backwardWeight(int chunk, int microBatch, int slice) {
            ops.add(new Op.BackwardWeight(unit(chunk, microBatch, slice)));
        }

        void compute(Op.Compute op) {
            ops.add(op);
        }

        void overlapped(Op.Forward forward, Op.Compute partner) {
            ops.add(new Op.Overlapped(forward, partner));
        }
    }

    private Pipeline() {}

    /** One stage per rank: stage r on rank r. */
    public static Schedule plain(String name, PipelineShape shape, ForRank writer) {
        Requirements.chunks(name, 1, shape);
        return loop(name, shape, writer);
    }

    /** Any number of chunks: stage s on rank s mod ranks. */
    public static Schedule loop(String name, PipelineShape shape, ForRank writer) {
        return schedule(name, shape, Placement.loop(shape.ranks(), shape.chunks()), writer);
    }

    /** Two chunks: rank r holds stages r and 2 x ranks - 1 - r. */
    public static Schedule v(String name, PipelineShape shape, ForRank writer) {
        Requirements.chunks(name, 2, shape);
        return schedule(name, shape, Placement.v(shape.ranks()), writer);
    }

    private static Schedule schedule(
            String name, PipelineShape shape, Placement placement, ForRank writer) {
        var programs = new ArrayList<RankProgram>();
        int expectedOps = 2 * shape.chunks() * shape.unitsPerStage();
        for (int rank = 0; rank < shape.ranks(); rank++) {
            var ops = new ProgramWriter(rank, expectedOps);
            writer.write(rank, new Program(placement.stagesOf(rank), ops));
            programs.add(ops.program());
        }
        return new Schedule(name, shape, placement, programs);
    }
}
