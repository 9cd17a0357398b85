package dev.penstock.runtime.model.layers;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.StepShapes;
import java.lang.foreign.MemorySegment;

/** The first stage's tokens of a step, those of a unit side by side. */
public final class InputTokens {
    private final StepShapes shapes;
    private final Tensor all;

    /**
     * @param shapes of the current step
     */
    public InputTokens(DeviceScope scope, StepShapes shapes) {
        this.shapes = shapes;
        all = scope.tensor("tokens", DType.I32, 1, shapes.whole().tokensPerStep());
    }

    /**
     * Takes the inputs of a micro-batch.
     *
     * @param tokens {@code [B][T]}
     */
    public void fill(int microBatch, int[] tokens) {
        BatchShape batch = shapes.of(microBatch);
        int rows = batch.microBatchRows();
        int[] byUnits = batch.slices() == 1 ? tokens : byUnits(batch, tokens);
        all.columns(first(microBatch), rows)
                .writeIndices(MemorySegment.ofArray(byUnits).asSlice(0, 4L * rows));
    }

    private int first(int microBatch) {
        return microBatch * shapes.whole().microBatchRows();
    }

    private static int[] byUnits(BatchShape batch, int[] tokens) {
        int[] byUnits = new int[batch.microBatchRows()];
        int to = 0;
        for (int s = 0; s < batch.slices(); s++) {
            int length = batch.sliceLengths().get(s);
            for (int b = 0; b < batch.sequences(); b++) {
                int from = b * batch.context() + batch.firstToken(s);
                System.arraycopy(tokens, from, byUnits, to, length);
                to += length;
            }
        }
        return byUnits;
    }

    /** Returns the tokens {@code [1, n]}, sequence by sequence. */
    public Tensor of(int microBatch, int slice) {
        BatchShape batch = shapes.of(microBatch);
        int before = batch.sequences() * batch.firstToken(slice);
        return all.columns(first(microBatch) + before, batch.rows(slice));
    }
}
