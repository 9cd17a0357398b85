package dev.penstock.runtime.model.layers;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.shape.FeedRows;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.PartTokens;
import dev.penstock.runtime.model.shape.Positions;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Cosines and, beside them, sines of the angles of the places that a rank holds, {@code [tokens,
 * k]}: row t is that of its token t.
 *
 * @param neighbours whether neighbours turn together, or halves
 */
public record TurnTable(Tensor rows, boolean neighbours) {
    /** Allocates a table; null for a model whose heads do not turn. */
    public static @Nullable TurnTable allocate(DeviceScope scope, ModelShape model, int tokens) {
        return model.positions() instanceof Positions.Rotary rotary
                ? new TurnTable(
                        scope.tensor(
                                "turns of heads", DType.F32, tokens, model.block().heads().size()),
                        rotary.neighbours())
                : null;
    }

    /** Computes the table. Angles are taken in double precision: places can be large. */
    public void fill(ModelShape model, List<PartTokens.Run> places) {
        if (!(model.positions() instanceof Positions.Rotary rotary)) {
            throw new IllegalStateException("heads of this model do not turn");
        }
        double[] frequencies = rotary.frequencies(model.block().heads().size());
        for (PartTokens.Run run : places) {
            float[] turns = new float[Math.multiplyExact(run.tokens(), rows.columns())];
            for (int t = 0; t < run.tokens(); t++) {
                int row = t * rows.columns();
                for (int i = 0; i < frequencies.length; i++) {
                    double angle = (run.first() + t) * frequencies[i];
                    turns[row + i] = (float) Math.cos(angle);
                    turns[row + frequencies.length + i] = (float) Math.sin(angle);
                }
            }
            rows.rows(run.firstHere(), run.tokens()).write(MemorySegment.ofArray(turns));
        }
    }

    /** Returns the turns of units of training, whose sequences all have the same places. */
    public HeadTurns ofUnits(Kernels kernels) {
        return (heads, blocks, back) ->
                rotate(kernels, heads, rows.rows(blocks.firstToken(), blocks.tokens()), back);
    }

    private void rotate(Kernels kernels, Tensor heads, Tensor places, boolean back) {
        if (neighbours) {
            kernels.rotateNeighbours(heads, places, back);
        } else {
            kernels.rotate(heads, places, back);
        }
    }

    /**
     * Returns the turns of units of inference; the table has the places from 0 on.
     *
     * @param unit the current one
     */
    public HeadTurns ofTexts(Kernels kernels, Supplier<FeedRows> unit) {
        return (heads, _, back) -> {
            for (FeedRows.Run run : unit.get().runs()) {
                int count = run.feed().count();
                rotate(
                        kernels,
                        heads.rows(run.firstRow(), count),
                        rows.rows(run.feed().place(), count),
                        back);
            }
        };
    }
}
