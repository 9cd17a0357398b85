package dev.penstock.runtime.model.layers;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.parameters.CounterRandom;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.PartTokens;
import dev.penstock.runtime.model.shape.PartTokens.Run;
import dev.penstock.runtime.model.shape.StepShapes;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * The random keys of a step's rows, from which dropout computes its masks. A key depends on the
 * run's seed, the step, and the number of the row's token among all of the step: masks are the same
 * however the work is divided, and are computed again wherever they are needed. Before a unit,
 * {@link #at} says which rows are next. Not thread-safe.
 */
public final class DropoutKeys {
    private final StepShapes shapes;
    private final Tensor keys;
    private boolean on;
    private @Nullable Tensor ofUnit;

    private DropoutKeys(StepShapes shapes, Tensor keys) {
        this.shapes = shapes;
        this.keys = keys;
    }

    /**
     * Allocates 8 bytes for each token of a step.
     *
     * @param shapes of the current step
     */
    public static DropoutKeys allocate(DeviceScope scope, StepShapes shapes) {
        return new DropoutKeys(
                shapes,
                scope.tensor(
                        "keys of rows for dropout", DType.I32, shapes.whole().tokensPerStep(), 2));
    }

    /** Begins a step: nothing is dropped in it unless it trains. */
    public void begin(boolean trains) {
        on = trains;
        ofUnit = null;
    }

    /**
     * Draws the keys of a step, whose micro-batches have their sizes already.
     *
     * @param seed of the run
     * @param firstSequence number of this rank's first sequence among all of the step
     * @param tokens that this rank holds of each
     * @param context tokens of a whole sequence
     */
    public void draw(long seed, long step, long firstSequence, PartTokens tokens, int context) {
        CounterRandom random = CounterRandom.of(seed, "dropout in step " + step);
        BatchShape whole = shapes.whole();
        int[] words = new int[2 * whole.microBatchRows()];
        for (int m = 0; m < whole.microBatches(); m++) {
            BatchShape batch = shapes.of(m);
            long first = firstSequence + (long) m * batch.sequences();
            int row = 0;
            for (int slice = 0; slice < batch.slices(); slice++) {
                int length = batch.sliceLengths().get(slice);
                for (int b = 0; b < batch.sequences(); b++) {
                    for (Run run : tokens.of(batch.firstToken(slice), length)) {
                        for (int i = 0; i < run.tokens(); i++) {
                            long key = random.bits((first + b) * context + run.first() + i);
                            words[2 * row] = (int) key;
                            words[2 * row + 1] = (int) (key >>> 32);
                            row++;
                        }
                    }
                }
            }
            keys.rows(m * whole.microBatchRows(), row)
                    .write(MemorySegment.ofArray(words).asSlice(0, 8L * row));
        }
    }

    /** A unit is next. */
    public void at(int microBatch, int slice) {
        if (!on) {
            return;
        }
        BatchShape batch = shapes.of(microBatch);
        int before = batch.sequences() * batch.firstToken(slice);
        ofUnit =
                keys.rows(microBatch * shapes.whole().microBatchRows() + before, batch.rows(slice));
    }

    /** Returns whether anything is dropped in this step. */
    boolean isOn() {
        return on;
    }

    /** Returns the keys of all rows of the unit; null where nothing is dropped. */
    @Nullable Tensor ofUnit() {
        return ofUnit;
    }
}
