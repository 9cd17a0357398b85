package dev.penstock.schedules.generate.zerobubble;

import dev.penstock.schedules.generate.base.Pipeline;
import dev.penstock.schedules.ir.PipelineShape;

/**
 * The units of one stage by number: forwards run micro-batch by micro-batch, slice by slice;
 * backwards take the micro-batches in the same order, the slices of each in reverse.
 */
record SplitUnits(PipelineShape shape, Pipeline.Program program) {
    void forward(int unit) {
        program.forward(0, unit / shape.slices(), unit % shape.slices());
    }

    void backwardInput(int unit) {
        program.backwardInput(0, unit / shape.slices(), returningSlice(unit));
    }

    void backwardWeight(int unit) {
        program.backwardWeight(0, unit / shape.slices(), returningSlice(unit));
    }

    private int returningSlice(int unit) {
        return shape.slices() - 1 - unit % shape.slices();
    }
}
