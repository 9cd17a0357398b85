package dev.penstock.runtime.model.activations;

import static java.util.Objects.requireNonNull;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.memory.Carver;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.ShardShape;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * Room for the {@link RecomputedBlocks} of one unit from its backward for the input, which computes
 * them again, to its backward for the weights, which reads them.
 *
 * @param largest of the largest unit that fits here, by the block's index in the stage
 * @param shape of what is kept
 * @param queryKeyValues by the block's index; empty where sequences are cut: there they are kept
 *     from the forward on
 */
public record KeptBlocks(
        Map<Integer, LayerActivations> largest,
        ShardShape shape,
        Map<Integer, Tensor> queryKeyValues) {

    /**
     * Allocates what these blocks keep.
     *
     * @param firstLayer of the stage
     * @param queryKeyValue type of queries, keys and values
     * @param rows of the largest unit that fits here; larger ones are never requested
     */
    public static KeptBlocks allocate(
            DeviceScope activations,
            DeviceScope keyValues,
            ShardShape shape,
            int firstLayer,
            BatchShape batch,
            DType queryKeyValue,
            Set<Integer> blocks,
            int rows) {
        Map<Integer, LayerActivations> largest =
                Carver.carve(
                        activations,
                        "recomputed blocks of a unit",
                        carver -> {
                            Map<Integer, LayerActivations> layers = new TreeMap<>();
                            for (int block : blocks) {
                                layers.put(
                                        block,
                                        LayerActivations.carve(
                                                carver, shape.like(firstLayer + block), rows));
                            }
                            return layers;
                        });
        Map<Integer, Tensor> queryKeyValues = new TreeMap<>();
        for (int block : batch.sliced() ? Set.<Integer>of() : blocks) {
            queryKeyValues.put(
                    block,
                    keyValues.tensor(
                            "queries, keys and values of recomputed block " + block,
                            queryKeyValue,
                            batch.microBatchRows(),
                            shape.like(firstLayer + block).queryKeyValueColumns()));
        }
        return new KeptBlocks(largest, shape, queryKeyValues);
    }

    /** Returns the activations of a block of a unit of n rows. */
    LayerActivations layer(int rows, int block) {
        return requireNonNull(largest.get(block)).first(rows, shape.ownRows(rows));
    }
}
