package dev.penstock.runtime.model;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.Op.Backward;
import dev.penstock.schedules.ir.Op.Forward;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/** Orders of work for pipelines of one stage per rank: entry s is what stage s does. */
final class Orders {
    private Orders() {}

    /** All forwards, then all backwards, micro-batches first in first out. */
    static List<List<Op>> gpipe(int stages, int microBatches, int slices) {
        return each(
                stages,
                stage -> {
                    List<Op> ops = new ArrayList<>();
                    for (int i = 0; i < microBatches * slices; i++) {
                        ops.add(forward(stage, i, slices));
                    }
                    for (int i = 0; i < microBatches * slices; i++) {
                        ops.add(backward(stage, i, slices));
                    }
                    return ops;
                });
    }

    /** All forwards, then all backwards, last in first out: GPipe's original and TeraPipe's. */
    static List<List<Op>> lastInFirstOut(int stages, int microBatches, int slices) {
        return each(
                stages,
                stage -> {
                    List<Op> ops = new ArrayList<>();
                    for (int i = 0; i < microBatches * slices; i++) {
                        ops.add(forward(stage, i, slices));
                    }
                    for (int i = microBatches * slices - 1; i >= 0; i--) {
                        ops.add(new Backward(unit(stage, i, slices)));
                    }
                    return ops;
                });
    }

    /** One forward, one backward; with slices Seq1F1B. */
    static List<List<Op>> oneForwardOneBackward(int stages, int microBatches, int slices) {
        int units = microBatches * slices;
        return each(
                stages,
                stage -> {
                    int warmUp = Math.min(stages - stage - 2 + slices, units);
                    List<Op> ops = new ArrayList<>();
                    for (int i = 0; i < warmUp; i++) {
                        ops.add(forward(stage, i, slices));
                    }
                    for (int i = 0; i < units - warmUp; i++) {
                        ops.add(forward(stage, warmUp + i, slices));
                        ops.add(backward(stage, i, slices));
                    }
                    for (int i = units - warmUp; i < units; i++) {
                        ops.add(backward(stage, i, slices));
                    }
                    return ops;
                });
    }

    /** Forwards only. */
    static List<List<Op>> evaluation(int stages, int microBatches, int slices) {
        return each(
                stages,
                stage ->
                        IntStream.range(0, microBatches * slices)
                                .mapToObj(i -> (Op) forward(stage, i, slices))
                                .toList());
    }

    private interface StageOrder {
        List<Op> of(int stage);
    }

    private static List<List<Op>> each(int stages, StageOrder order) {
        return IntStream.range(0, stages).mapToObj(order::of).toList();
    }

    private static Op forward(int stage, int i, int slices) {
        return new Forward(unit(stage, i, slices));
    }

    private static Op backward(int stage, int i, int slices) {
        return new Backward(new WorkUnit(stage, i / slices, slices - 1 - i % slices));
    }

    private static WorkUnit unit(int stage, int i, int slices) {
        return new WorkUnit(stage, i / slices, i % slices);
    }
}
