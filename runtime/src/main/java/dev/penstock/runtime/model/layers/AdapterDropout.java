package dev.penstock.runtime.model.layers;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.DropoutMask;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.parameters.CounterRandom;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.PartTokens;
import dev.penstock.runtime.model.shape.PartTokens.Run;
import dev.penstock.runtime.model.shape.StepShapes;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * Dropout of what the low-rank branches of a stage read. Each row of a step has a random key, which
 * depends on the run's seed, the step, and the number of its token among all of the step: masks are
 * the same however the work is divided, and are computed again wherever they are needed. Before a
 * unit, {@link #at} says which rows are next. Not thread-safe.
 */
public final class AdapterDropout {
    private final double probability;
    private final StepShapes shapes;
    private final Tensor keys;
    private final Tensor room;
    private boolean on;
    private @Nullable Tensor ofUnit;

    private AdapterDropout(double probability, StepShapes shapes, Tensor keys, Tensor room) {
        this.probability = probability;
        this.shapes = shapes;
        this.keys = keys;
        this.room = room;
    }

    /**
     * Allocates what is needed.
     *
     * @param kept for what stays through a step: 8 bytes of each token
     * @param scratch for one input of the largest unit
     * @param shapes of the current step
     * @param widest columns of the widest input
     */
    public static AdapterDropout allocate(
            DeviceScope kept,
            DeviceScope scratch,
            StepShapes shapes,
            int widest,
            double probability) {
        BatchShape whole = shapes.whole();
        return new AdapterDropout(
                probability,
                shapes,
                kept.tensor("keys of rows for dropout", DType.I32, whole.tokensPerStep(), 2),
                scratch.tensor(
                        "input of an adapter after dropout",
                        DType.F32,
                        1,
                        Math.multiplyExact(whole.largestRows(), widest)));
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

    /** Returns the factor that makes up for what is dropped. */
    double scale() {
        return 1 / (1 - probability);
    }

    /**
     * Returns the mask of a branch, which does not scale what it keeps: a rounded input would be
     * rounded once more.
     *
     * @param name of its inner matrix
     * @param firstColumn of the layer's input that this rank has
     */
    DropoutMask mask(String name, int firstColumn) {
        return new DropoutMask(CounterRandom.of(0, name).bits(0), firstColumn, probability, 1);
    }

    /** Returns room for a matrix, which is used until the next call. */
    Tensor room(DType type, int rows, int columns) {
        return new Tensor(room.buffer(), room.offsetBytes(), type, rows, columns, columns);
    }

    /**
     * Returns an input after dropout, not scaled, valid until the next call of any method; the
     * input itself where nothing is dropped.
     *
     * @param firstRow of the input in the unit
     */
    Tensor dropped(Kernels kernels, Tensor x, int firstRow, DropoutMask mask) {
        Tensor unit = ofUnit;
        if (unit == null) {
            return x;
        }
        Tensor y = room(x.type(), x.rows(), x.columns());
        kernels.dropout(x, unit.rows(firstRow, x.rows()), mask, y, false);
        return y;
    }

    /** Adds to an input's gradient what comes from that after dropout, of a whole unit. */
    void addGradient(Kernels kernels, Tensor gradient, DropoutMask mask, Tensor dx) {
        Tensor unit = ofUnit;
        if (unit == null) {
            kernels.add(gradient, dx);
        } else {
            kernels.dropout(gradient, unit.rows(0, dx.rows()), mask, dx, true);
        }
    }
}
