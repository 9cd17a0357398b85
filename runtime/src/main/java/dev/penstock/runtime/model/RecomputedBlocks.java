package dev.penstock.runtime.model;

import static java.util.Objects.requireNonNull;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Tensor;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * The blocks of a stage that keep their input alone and run again right before their backward, and
 * the room in which one of them at a time has its activations (Chen et al. 2016, arXiv 1604.06174,
 * with every block a segment).
 *
 * @param blocks indexes in the stage
 * @param activations of the largest unit; null if there are no such blocks
 * @param queryKeyValues of a micro-batch; null where sequences are cut: later slices read the keys
 *     and values of earlier ones, so these are kept
 */
record RecomputedBlocks(
        Set<Integer> blocks,
        @Nullable LayerActivations activations,
        @Nullable Tensor queryKeyValues) {
    private static final RecomputedBlocks NONE = new RecomputedBlocks(Set.of(), null, null);

    /** None in a stage whose backwards come in two parts: the second reads all activations. */
    static RecomputedBlocks allocate(
            DeviceScope scope, GptSettings settings, StageRole role, StageBudget budget) {
        Set<Integer> blocks =
                IntStream.range(0, role.layers())
                        .filter(i -> settings.recomputedBlocks().contains(role.firstLayer() + i))
                        .boxed()
                        .collect(Collectors.toSet());
        if (budget.split() || blocks.isEmpty()) {
            return NONE;
        }
        BatchShape batch = settings.batchOfPart();
        ShardShape shape = settings.shape(role);
        return new RecomputedBlocks(
                blocks,
                Carver.carve(
                        scope,
                        "activations of a recomputed block",
                        carver -> LayerActivations.carve(carver, shape, batch.largestRows())),
                batch.sliced()
                        ? null
                        : scope.tensor(
                                "queries, keys and values of a recomputed block",
                                DType.F32,
                                batch.microBatchRows(),
                                3 * shape.headColumns()));
    }

    boolean contains(int block) {
        return blocks.contains(block);
    }

    /** Where such a block of a unit of n rows has its activations for the moment. */
    LayerActivations activations(int rows, int own) {
        return requireNonNull(activations).first(rows, own);
    }
}
