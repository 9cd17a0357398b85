package dev.penstock.schedules.generate.zerobubble;

import dev.penstock.schedules.generate.base.Pipeline;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import java.util.ArrayList;
import java.util.List;

/**
 * An order with split backwards on a plain pipeline, small enough to make and time many of them.
 * Micro-batches are all alike, so only orders are of interest in which each rank's passes of one
 * kind take them in their order: the k-th pass of a kind is that of micro-batch k.
 *
 * @param ranks entry r is what rank r does
 */
public record SplitOrder(List<List<SplitPass>> ranks) {
    public SplitOrder {
        ranks = ranks.stream().map(List::copyOf).toList();
    }

    /** The order of a schedule that is split everywhere and takes the micro-batches in order. */
    static SplitOrder of(Schedule schedule) {
        var ranks = new ArrayList<List<SplitPass>>();
        for (var program : schedule.programs()) {
            ranks.add(
                    program.ops().stream()
                            .flatMap(op -> op.computations().stream())
                            .map(SplitOrder::pass)
                            .toList());
        }
        return new SplitOrder(ranks);
    }

    private static SplitPass pass(Op.Compute op) {
        return switch (op) {
            case Op.Forward _ -> SplitPass.FORWARD;
            case Op.BackwardInput _ -> SplitPass.BACKWARD_INPUT;
            case Op.BackwardWeight _ -> SplitPass.BACKWARD_WEIGHT;
            case Op.Backward _, Op.Recompute _ ->
                    throw new IllegalArgumentException("expected a split backward, got " + op);
        };
    }

    /** The most micro-batches that any rank holds at a time. */
    int peak() {
        int peak = 0;
        for (List<SplitPass> passes : ranks) {
            int live = 0;
            for (SplitPass pass : passes) {
                switch (pass) {
                    case FORWARD -> live++;
                    case BACKWARD_INPUT -> {}
                    case BACKWARD_WEIGHT -> live--;
                }
                peak = Math.max(peak, live);
            }
        }
        return peak;
    }

    Schedule schedule(String name, PipelineShape shape) {
        return Pipeline.plain(
                name,
                shape,
                (rank, program) -> {
                    int forwards = 0;
                    int inputs = 0;
                    int weights = 0;
                    for (SplitPass pass : ranks.get(rank)) {
                        switch (pass) {
                            case FORWARD -> program.forward(0, forwards++, 0);
                            case BACKWARD_INPUT -> program.backwardInput(0, inputs++, 0);
                            case BACKWARD_WEIGHT -> program.backwardWeight(0, weights++, 0);
                        }
                    }
                });
    }
}
