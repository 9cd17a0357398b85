package dev.penstock.runtime.model.activations;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.memory.Carver;
import dev.penstock.runtime.model.memory.StageScopes;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.ShardShape;
import dev.penstock.runtime.model.shape.StageRole;
import dev.penstock.runtime.model.shape.TrainedParts;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Room that the blocks of a stage use in turns for inputs of linear layers that nobody reads after
 * the forward: only the gradients of a weight and of adapters take them, and these are frozen.
 *
 * @param firstLayer of the stage
 * @param norm1 as in {@link LayerActivations}, of the largest unit; null if all blocks keep theirs,
 *     as of the others
 */
public record PassingActivations(
        TrainedParts trained,
        int firstLayer,
        @Nullable Tensor norm1,
        @Nullable Tensor attendedFactor,
        @Nullable Tensor norm2,
        @Nullable Tensor activated) {
    private static final String QUERY_KEY_VALUE = "attn.c_attn";
    private static final String ATTENTION_OUTPUT = "attn.c_proj";
    private static final String HIDDEN = "mlp.c_fc";
    private static final String MLP_OUTPUT = "mlp.c_proj";

    static PassingActivations allocate(StageScopes scopes, GptSettings settings, StageRole role) {
        TrainedParts trained = settings.trained();
        ShardShape shape = settings.shape(role);
        int rows = settings.batchOfPart().largestRows();
        int own = shape.ownRows(rows);
        DType kept = shape.kept();
        boolean apart = kept != DType.F32 || shape.retention() != null;
        var passing = new Passing(scopes, trained, role, kept);
        return new PassingActivations(
                trained,
                role.firstLayer(),
                passing.room(QUERY_KEY_VALUE, own, shape.width()),
                apart ? passing.room(ATTENTION_OUTPUT, rows, shape.outputColumns()) : null,
                passing.room(HIDDEN, own, shape.width()),
                passing.room(MLP_OUTPUT, rows, shape.hidden()));
    }

    private record Passing(StageScopes scopes, TrainedParts trained, StageRole role, DType kept) {
        /** Returns room for the input of a layer, if it is of use to any block. */
        @Nullable Tensor room(String linear, int rows, int columns) {
            int end = role.firstLayer() + role.layers();
            boolean passes =
                    IntStream.range(role.firstLayer(), end)
                            .anyMatch(layer -> !trained.factor(layer, linear));
            return passes
                    ? Carver.carve(
                            scopes.scratch(),
                            "inputs of frozen " + linear,
                            carver -> carver.factor(kept, rows, columns))
                    : null;
        }
    }

    @Nullable Tensor norm1(int block, int own) {
        return of(norm1, block, QUERY_KEY_VALUE, own);
    }

    @Nullable Tensor attendedFactor(int block, int rows, int columns) {
        Tensor own = of(attendedFactor, block, ATTENTION_OUTPUT, rows);
        return own == null || own.columns() == columns ? own : Carver.factorIn(own, columns);
    }

    @Nullable Tensor norm2(int block, int own) {
        return of(norm2, block, HIDDEN, own);
    }

    @Nullable Tensor activated(int block, int rows) {
        return of(activated, block, MLP_OUTPUT, rows);
    }

    /** Returns the room as a block uses it; null if the block keeps its own. */
    private @Nullable Tensor of(@Nullable Tensor room, int block, String linear, int rows) {
        return room == null || trained.factor(firstLayer + block, linear)
                ? null
                : room.rows(0, rows);
    }
}
