package dev.penstock.runtime.model.stage;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.activations.RecomputedBlocks;
import dev.penstock.runtime.model.activations.StageStash;
import dev.penstock.runtime.model.activations.UnitRooms;
import dev.penstock.runtime.model.activations.Workspace;
import dev.penstock.runtime.model.layers.AdapterDropout;
import dev.penstock.runtime.model.layers.AdapterRoom;
import dev.penstock.runtime.model.layers.Compute;
import dev.penstock.runtime.model.layers.DividedRetention;
import dev.penstock.runtime.model.layers.DropoutKeys;
import dev.penstock.runtime.model.layers.InputTokens;
import dev.penstock.runtime.model.layers.LossHead;
import dev.penstock.runtime.model.layers.LossLedger;
import dev.penstock.runtime.model.layers.NormGradients;
import dev.penstock.runtime.model.layers.RingBuffers;
import dev.penstock.runtime.model.layers.StreamDropout;
import dev.penstock.runtime.model.layers.TurnTable;
import dev.penstock.runtime.model.memory.Carver;
import dev.penstock.runtime.model.memory.StageScopes;
import dev.penstock.runtime.model.mesh.MeshShards;
import dev.penstock.runtime.model.parameters.OuterState;
import dev.penstock.runtime.model.parameters.ParameterAllocator;
import dev.penstock.runtime.model.parameters.StageParameters;
import dev.penstock.runtime.model.shape.Adapters;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.ShardShape;
import dev.penstock.runtime.model.shape.Sharding;
import dev.penstock.runtime.model.shape.StageBudget;
import dev.penstock.runtime.model.shape.StageRole;
import dev.penstock.runtime.model.shape.StepShapes;
import java.util.function.IntPredicate;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Everything that a training stage allocates on its device, all of it when the stage is built.
 *
 * @param shapes of the current step
 * @param recomputed blocks that share their activations
 * @param stash what units in flight keep
 * @param workspace scratch of a backward of the largest unit
 * @param dQueryKeyValue scratch {@code [B*T, (h+2g)k]} of this shard's heads where sequences are
 *     not cut
 * @param state where layers have a retention: room for states inside a block of the grid, or for
 *     those that context parts gather
 * @param ring where sequences lie on several ranks and layers attend
 * @param turns where heads turn by the places of their tokens
 * @param allRows where tensor shards divide rows: room for the rows of all of them {@code [n, d]}
 * @param mesh where tensor shards lie on a mesh
 * @param normGradients room for {@link NormGradients}, if there are any
 * @param dropoutKeys where anything is dropped in training
 * @param dropout of the residual stream, if there is any
 * @param adapters room of low-rank branches, if there are any
 * @param widened see {@link Compute}
 * @param projected see {@link Compute}
 * @param logits on the last stage, of the rows of a chunk
 * @param inputs on the first stage
 * @param ledger on the last stage
 * @param outer where replicas take steps alone
 */
record StageBuffers(
        StageParameters parameters,
        StepShapes shapes,
        RecomputedBlocks recomputed,
        StageStash stash,
        Workspace workspace,
        @Nullable Tensor dQueryKeyValue,
        @Nullable Tensor state,
        @Nullable RingBuffers ring,
        @Nullable TurnTable turns,
        @Nullable Tensor allRows,
        MeshShards.@Nullable Rooms mesh,
        @Nullable Tensor normGradients,
        @Nullable DropoutKeys dropoutKeys,
        @Nullable StreamDropout dropout,
        @Nullable AdapterRoom adapters,
        @Nullable Tensor widened,
        @Nullable Tensor projected,
        @Nullable Tensor logits,
        @Nullable InputTokens inputs,
        @Nullable LossLedger ledger,
        @Nullable OuterState outer) {

    static StageBuffers allocate(
            StageScopes scopes,
            GptSettings settings,
            StageRole role,
            Sharding sharding,
            StageBudget budget,
            UnitRooms rooms) {
        ShardShape shape = settings.shape(role);
        BatchShape batch = settings.batchOfPart();
        StageParameters parameters =
                StageParameters.allocate(
                        new ParameterAllocator(
                                scopes,
                                settings.precision(),
                                ParameterAllocator.Use.TRAIN,
                                sharding,
                                settings.fineTuning()),
                        shape,
                        role);
        RecomputedBlocks recomputed = RecomputedBlocks.allocate(scopes, settings, role, budget);
        var shapes = new StepShapes(batch);
        StageStash stash =
                new StageStash(shapes, scopes, settings, role, budget, recomputed, rooms);
        Tensor dQueryKeyValue = dQueryKeyValue(scopes, shape, batch);
        Tensor logits = logits(scopes, shape, role, batch);
        int parts = settings.grid().context();
        DropoutKeys keys = dropoutKeys(scopes, settings, role, shapes);
        RingBuffers ring =
                parts == 1 || !hasLayer(role, layer -> !shape.model().block().retains(layer))
                        ? null
                        : RingBuffers.allocate(scopes.scratch(), shape, batch, parts);
        return new StageBuffers(
                parameters,
                shapes,
                recomputed,
                stash,
                workspace(scopes, settings, role),
                dQueryKeyValue,
                state(scopes, settings, role),
                ring,
                role.layers() == 0
                        ? null
                        : TurnTable.allocate(scopes.tables(), shape.model(), batch.context()),
                shape.sequence() ? allRows(scopes, shape, batch) : null,
                mesh(scopes, shape, role, batch),
                NormGradients.room(scopes.scratch(), shape, parameters),
                keys,
                streamDropout(scopes, settings, role, keys),
                adapters(scopes, settings, role, keys, parameters),
                Compute.room(scopes.scratch(), settings.precision().multiply(), parameters),
                projected(scopes, settings, role),
                logits,
                role.first() ? new InputTokens(scopes.activations(), shapes) : null,
                role.last()
                        ? new LossLedger(
                                scopes.activations(), shape, shapes, settings.gradientSum())
                        : null,
                settings.outer()
                        .map(
                                outer ->
                                        OuterState.allocate(
                                                scopes,
                                                outer,
                                                parameters,
                                                role,
                                                settings.grid().data()))
                        .orElse(null));
    }

    /**
     * Allocates scratch for an op that runs at the same time as one that uses these, and returns it
     * with all that both use. Only for settings that {@linkplain GptSettings#runsPairsAtOnce allow}
     * that.
     */
    StageBuffers beside(StageScopes scopes, GptSettings settings, StageRole role) {
        ShardShape shape = settings.shape(role);
        BatchShape batch = settings.batchOfPart();
        return new StageBuffers(
                parameters,
                shapes,
                recomputed,
                stash,
                workspace(scopes, settings, role),
                dQueryKeyValue(scopes, shape, batch),
                state(scopes, settings, role),
                null,
                turns,
                shape.sequence() ? allRows(scopes, shape, batch) : null,
                mesh(scopes, shape, role, batch),
                null,
                null,
                null,
                null,
                Compute.room(scopes.scratch(), settings.precision().multiply(), parameters),
                projected(scopes, settings, role),
                logits(scopes, shape, role, batch),
                inputs,
                ledger,
                null);
    }

    private static @Nullable Tensor dQueryKeyValue(
            StageScopes scopes, ShardShape shape, BatchShape batch) {
        return batch.sliced()
                ? null
                : scopes.scratch()
                        .tensor(
                                "gradient of queries, keys and values",
                                DType.F32,
                                batch.microBatchRows(),
                                shape.queryKeyValueColumns());
    }

    private static @Nullable Tensor state(
            StageScopes scopes, GptSettings settings, StageRole role) {
        if (!hasLayer(role, settings.shape().block()::retains)) {
            return null;
        }
        int parts = settings.grid().context();
        int rows =
                parts == 1
                        ? 2
                        : DividedRetention.roomRows(parts, settings.batchOfPart().sequences());
        return scopes.scratch()
                .tensor(
                        parts == 1 ? "states of a document" : "states of runs of tokens",
                        DType.F32,
                        rows,
                        settings.shape(role).stateColumns());
    }

    private static boolean hasLayer(StageRole role, IntPredicate kind) {
        return IntStream.range(role.firstLayer(), role.firstLayer() + role.layers()).anyMatch(kind);
    }

    private static @Nullable Tensor logits(
            StageScopes scopes, ShardShape shape, StageRole role, BatchShape batch) {
        return role.last()
                ? LossHead.logitsScratch(scopes.scratch(), shape, LossHead.logitsRows(shape, batch))
                : null;
    }

    private static MeshShards.@Nullable Rooms mesh(
            StageScopes scopes, ShardShape shape, StageRole role, BatchShape batch) {
        return shape.mesh().isThere()
                ? MeshShards.Rooms.allocate(
                        scopes.scratch(), shape, role, batch, LossHead.logitsRows(shape, batch))
                : null;
    }

    private static Tensor allRows(StageScopes scopes, ShardShape shape, BatchShape batch) {
        return scopes.scratch()
                .tensor("rows of all shards", DType.F32, batch.largestRows(), shape.width());
    }

    /** Returns null where nothing is ever dropped. */
    private static @Nullable DropoutKeys dropoutKeys(
            StageScopes scopes, GptSettings settings, StageRole role, StepShapes shapes) {
        boolean ofHead = role.last() && settings.shape().classifies();
        boolean ofStream = settings.dropout() > 0 && (role.first() || role.layers() > 0 || ofHead);
        boolean ofAdapters =
                role.layers() > 0
                        && settings.fineTuning()
                                .adapters()
                                .filter(adapters -> adapters.dropout() > 0)
                                .isPresent();
        return ofStream || ofAdapters ? DropoutKeys.allocate(scopes.activations(), shapes) : null;
    }

    private static @Nullable StreamDropout streamDropout(
            StageScopes scopes, GptSettings settings, StageRole role, @Nullable DropoutKeys keys) {
        return keys == null || settings.dropout() == 0
                ? null
                : StreamDropout.allocate(
                        scopes.scratch(),
                        keys,
                        settings.shape(role),
                        settings.batchOfPart().largestRows(),
                        role.layers() > 0,
                        settings.dropout());
    }

    private static @Nullable AdapterRoom adapters(
            StageScopes scopes,
            GptSettings settings,
            StageRole role,
            @Nullable DropoutKeys keys,
            StageParameters parameters) {
        int rows = settings.batchOfPart().largestRows();
        return settings.fineTuning()
                .adapters()
                .filter(_ -> role.layers() > 0)
                .map(
                        adapters ->
                                AdapterRoom.allocate(
                                        scopes.scratch(),
                                        scopes.tables(),
                                        adapters.rank(),
                                        rows,
                                        dropout(scopes, adapters, keys, rows, parameters)))
                .orElse(null);
    }

    private static @Nullable AdapterDropout dropout(
            StageScopes scopes,
            Adapters adapters,
            @Nullable DropoutKeys keys,
            int rows,
            StageParameters parameters) {
        return keys == null || adapters.dropout() == 0
                ? null
                : AdapterDropout.allocate(
                        scopes.scratch(),
                        keys,
                        rows,
                        parameters.widestAdapterInput(),
                        adapters.dropout());
    }

    private static @Nullable Tensor projected(
            StageScopes scopes, GptSettings settings, StageRole role) {
        return settings.keptQueryKeyValues() == DType.F32 || role.layers() == 0
                ? null
                : scopes.scratch()
                        .tensor(
                                "queries, keys and values before they are rounded",
                                DType.F32,
                                settings.batchOfPart().largestRows(),
                                settings.shape(role).queryKeyValueColumns());
    }

    private static Workspace workspace(StageScopes scopes, GptSettings settings, StageRole role) {
        boolean ownStream = role.last() && (role.first() || settings.trained().endsIn(role));
        return Carver.carve(
                scopes.scratch(),
                "gradients of a unit",
                carver ->
                        Workspace.carve(
                                carver, settings.shape(role), settings.batchOfPart(), ownStream));
    }
}
