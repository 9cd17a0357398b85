package dev.penstock.runtime.model.layers;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.shape.BatchShape;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;

/** The first stage's tokens of a step, those of a unit side by side. */
public final class InputTokens {
    private final BatchShape batch;
    private final List<Tensor> units = new ArrayList<>();

    public InputTokens(DeviceScope scope, BatchShape batch) {
        this.batch = batch;
        Tensor all = scope.tensor("tokens", DType.I32, 1, batch.tokensPerStep());
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
        for (int s = 0; s < batch.slices(); s++) {
            int length = batch.sliceLengths().get(s);
            MemorySegment unit = of(microBatch, s).segment();
            for (int b = 0; b < batch.sequences(); b++) {
                MemorySegment.copy(
                        tokens,
                        b * batch.context() + batch.firstToken(s),
                        unit,
                        ValueLayout.JAVA_INT,
                        4L * b * length,
                        length);
            }
        }
    }

    /** Returns the tokens {@code [1, n]}, sequence by sequence. */
    public Tensor of(int microBatch, int slice) {
        return units.get(microBatch * batch.slices() + slice);
    }
}
