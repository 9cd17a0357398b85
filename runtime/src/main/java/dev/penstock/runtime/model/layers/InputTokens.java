package dev.penstock.runtime.model.layers;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.shape.BatchShape;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/** The first stage's tokens of a step, those of a unit side by side. */
public final class InputTokens {
    private final BatchShape batch;
    private final Tensor all;
    private final List<Tensor> units = new ArrayList<>();

    public InputTokens(DeviceScope scope, BatchShape batch) {
        this.batch = batch;
        all = scope.tensor("tokens", DType.I32, 1, batch.tokensPerStep());
        int first = 0;
        for (int m = 0; m < batch.microBatches(); m++) {
            for (int s = 0; s < batch.slices(); s++) {
                units.add(all.columns(first, batch.rows(s)));
                first += batch.rows(s);
            }
        }
    }

    /**
     * Takes the inputs of a micro-batch.
     *
     * @param tokens {@code [B][T]}
     */
    public void fill(int microBatch, int[] tokens) {
        int rows = batch.microBatchRows();
        int[] byUnits = batch.slices() == 1 ? tokens : byUnits(tokens);
        all.columns(microBatch * rows, rows)
                .writeIndices(MemorySegment.ofArray(byUnits).asSlice(0, 4L * rows));
    }

    private int[] byUnits(int[] tokens) {
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
        return units.get(microBatch * batch.slices() + slice);
    }
}
