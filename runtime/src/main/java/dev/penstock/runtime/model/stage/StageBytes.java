package dev.penstock.runtime.model.stage;

import dev.penstock.runtime.model.activations.KeptBlocks;
import dev.penstock.runtime.model.activations.RecomputedBlocks;
import dev.penstock.runtime.model.activations.UnitActivations;
import dev.penstock.runtime.model.activations.UnitRooms;
import dev.penstock.runtime.model.memory.Carver;
import dev.penstock.runtime.model.memory.CountingScope;
import dev.penstock.runtime.model.memory.StageScopes;
import dev.penstock.runtime.model.parameters.GatherPool;
import dev.penstock.runtime.model.parameters.ParameterGroup;
import dev.penstock.runtime.model.parameters.ParameterUnits;
import dev.penstock.runtime.model.parameters.RowPool;
import dev.penstock.runtime.model.parameters.StageParameters;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.ShardShape;
import dev.penstock.runtime.model.shape.Sharding;
import dev.penstock.runtime.model.shape.StageBudget;
import dev.penstock.runtime.model.shape.StageRole;
import dev.penstock.runtime.model.shape.ZeroSettings;
import dev.penstock.schedules.ir.LayerRange;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * The bytes that an order takes and frees on a stage.
 *
 * @param activations entry s: of a unit of slice s, from its forward to its backward
 * @param awaitingWeight entry s: what such a unit holds in addition between the two parts of its
 *     backward
 * @param gatheredLayers entry l: of layer l while its parameters are gathered by ops; 0 where they
 *     have their own room. The embedding is gathered with the first layer, the head with the last.
 */
public record StageBytes(
        List<Long> activations, List<Long> awaitingWeight, List<Long> gatheredLayers) {
    public StageBytes {
        activations = List.copyOf(activations);
        awaitingWeight = List.copyOf(awaitingWeight);
        gatheredLayers = List.copyOf(gatheredLayers);
    }

    static StageBytes of(
            GptSettings settings, StageRole role, Sharding sharding, StageBudget budget) {
        StageBuffers buffers =
                StageBuffers.allocate(
                        StageScopes.counting(settings, "weighed"),
                        settings,
                        role,
                        sharding,
                        budget,
                        UnitRooms.apart());
        return new StageBytes(
                activations(settings, role, budget, buffers.recomputed()),
                awaitingWeight(settings, role, buffers.recomputed()),
                gathered(settings, role, sharding, buffers.parameters()));
    }

    private static List<Long> activations(
            GptSettings settings, StageRole role, StageBudget budget, RecomputedBlocks recomputed) {
        BatchShape batch = settings.batchOfPart();
        ShardShape shape = settings.shape(role);
        long whole = 0;
        long states = 0;
        for (int layer = 0; layer < role.layers() && !batch.sliced(); layer++) {
            boolean shared = recomputed.contains(layer) && recomputed.queryKeyValues() != null;
            ShardShape own = shape.like(role.firstLayer() + layer);
            whole += shared ? 0 : (long) own.queryKeyValueColumns() * batch.microBatchRows();
            states += shared ? 0 : (long) own.stateColumns() * settings.stateRows();
        }
        List<Long> bytes = new ArrayList<>();
        for (int slice = 0; slice < batch.slices(); slice++) {
            int rows = batch.rows(slice);
            var unit = new CountingScope("unit");
            Carver.carve(
                    unit,
                    "unit",
                    carver ->
                            UnitActivations.carve(
                                    carver, shape, role, rows, budget.split(), recomputed));
            bytes.add(
                    unit.liveBytes()
                            + whole * settings.keptQueryKeyValues().bytes()
                            + states * Float.BYTES);
        }
        return bytes;
    }

    private static List<Long> awaitingWeight(
            GptSettings settings, StageRole role, RecomputedBlocks recomputed) {
        BatchShape batch = settings.batchOfPart();
        List<Long> bytes = new ArrayList<>();
        for (int slice = 0; slice < batch.slices(); slice++) {
            var unit = new CountingScope("unit");
            if (recomputed.kept() != null) {
                KeptBlocks.allocate(
                        unit,
                        unit,
                        settings.shape(role),
                        role.firstLayer(),
                        batch,
                        settings.keptQueryKeyValues(),
                        recomputed.again(),
                        batch.rows(slice));
            }
            bytes.add(unit.liveBytes());
        }
        return bytes;
    }

    private static List<Long> gathered(
            GptSettings settings, StageRole role, Sharding sharding, StageParameters parameters) {
        var units = new ParameterUnits(parameters, settings.trained().lowestBackward(role));
        boolean byOps =
                sharding.parameters()
                        && settings.zero().residency() != ZeroSettings.Residency.LAYER;
        List<Long> bytes = new ArrayList<>();
        Set<ParameterGroup> counted = new HashSet<>();
        for (int layer = 0; layer < Math.max(1, parameters.layers().size()); layer++) {
            long ofLayer = 0;
            for (ParameterGroup group : units.of(new LayerRange(layer, layer), true)) {
                if (byOps && counted.add(group)) {
                    for (RowPool.Kind row : GatherPool.rowsOf(group)) {
                        ofLayer += row.elements() * row.type().bytes();
                    }
                }
            }
            bytes.add(ofLayer);
        }
        return bytes;
    }
}
