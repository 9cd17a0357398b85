package dev.penstock.schedules.generate.zerobubble;

import dev.penstock.schedules.generate.base.Pipeline;
import dev.penstock.schedules.ir.PipelineShape;

/**
 * The units of one stage by number: forwards run micro-batch by micro-batch, slice by slice;
 * backwards take the micro-batches in the same order, the slices of each in reverse.
 */
record SplitUnits(PipelineShape shape, Pipeline.Program program) {
    /**
     * All units of the stage, one forward and one backward in turn.
     *
     * @param ahead forwards before the first backward
     * @param behind backwards for the input before the first one for the weights
     */
    void alternate(int ahead, int behind) {
        int units = shape.unitsPerStage();
        // warm-up
        for (int i = 0; i < ahead; i++) {
            forward(i);
        }
        // steady, then cool-down without forwards
        for (int i = 0; i < units; i++) {
            if (ahead + i < units) {
                forward(ahead + i);
            }
            backwardInput(i);
            if (i >= behind) {
                backwardWeight(i - behind);
            }
        }
        // what was held back
        for (int i = units - behind; i < units; i++) {
            backwardWeight(i);
        }
    }

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
