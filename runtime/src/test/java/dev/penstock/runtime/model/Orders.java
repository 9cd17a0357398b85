package dev.penstock.runtime.model;

import dev.penstock.schedules.generate.Seq1F1B;
import dev.penstock.schedules.generate.TeraPipe;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;

/** Orders of work for pipelines of one stage per rank. */
public final class Orders {
    private Orders() {}

    /** One forward, one backward; with slices Seq1F1B. */
    public static Schedule oneForwardOneBackward(int stages, int microBatches, int slices) {
        return Seq1F1B.schedule(PipelineShape.of(stages, microBatches, slices));
    }

    /** All forwards, then all backwards, last in first out: TeraPipe, or GPipe's original. */
    static Schedule lastInFirstOut(int stages, int microBatches, int slices) {
        return TeraPipe.schedule(PipelineShape.of(stages, microBatches, slices));
    }

    /** All forwards, then all backwards in the order of 1F1B: FIFO GPipe, also over slices. */
    public static Schedule gpipe(int stages, int microBatches, int slices) {
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

    /** The same order with backwards in two parts, the second up to {@code late} others later. */
    public static Schedule split(Schedule order, int late) {
        List<RankProgram> programs = new ArrayList<>();
        for (RankProgram program : order.programs()) {
            List<Op> ops = new ArrayList<>();
            Deque<Op> waiting = new ArrayDeque<>();
            for (Op op : program.ops()) {
                if (op instanceof Op.Backward(WorkUnit unit)) {
                    ops.add(new Op.BackwardInput(unit));
                    waiting.add(new Op.BackwardWeight(unit));
                } else {
                    ops.add(op);
                }
                if (waiting.size() > late) {
                    ops.add(waiting.remove());
                }
            }
            ops.addAll(waiting);
            programs.add(new RankProgram(program.rank(), ops));
        }
        return order.withPrograms(programs);
    }

    /** The same order with every forward that follows a backward overlapped with it. */
    static Schedule overlapped(Schedule order) {
        List<RankProgram> programs = new ArrayList<>();
        for (RankProgram program : order.programs()) {
            List<Op> ops = new ArrayList<>();
            for (Op op : program.ops()) {
                if (op instanceof Op.Forward forward
                        && !ops.isEmpty()
                        && ops.getLast() instanceof Op.InputGradient backward) {
                    ops.set(ops.size() - 1, new Op.Overlapped(forward, backward));
                } else {
                    ops.add(op);
                }
            }
            programs.add(new RankProgram(program.rank(), ops));
        }
        return order.withPrograms(programs);
    }

    /** The same order with the halves of pairs one after the other. */
    static Schedule apart(Schedule order) {
        return order.withPrograms(
                order.programs().stream()
                        .map(
                                program ->
                                        new RankProgram(
                                                program.rank(),
                                                program.ops().stream()
                                                        .<Op>flatMap(
                                                                op -> op.computations().stream())
                                                        .toList()))
                        .toList());
    }
}
