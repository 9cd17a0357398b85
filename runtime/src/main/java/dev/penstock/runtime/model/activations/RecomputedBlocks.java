package dev.penstock.runtime.model.activations;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.memory.Carver;
import dev.penstock.runtime.model.memory.StageScopes;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.ShardShape;
import dev.penstock.runtime.model.shape.StageBudget;
import dev.penstock.runtime.model.shape.StageRole;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * The blocks of a stage that keep only their input and run again right before their backward, or
 * have none since nothing is trained there and below, and the room that holds the activations of
 * one of them at a time (Chen et al. 2016, arXiv 1604.06174, with every block a segment). Where
 * backwards come in two parts, the first recomputes all activations and the second reads them, so
 * they stay for every unit in between:
 *
 * <pre>
 *               forward            backwardInput              backwardWeight
 *   inputs      |-----------------------------------------------------------|
 *   blocks      one at a time      all of them -----------------------------|
 * </pre>
 *
 * @param blocks indexes in the stage
 * @param again those of them that have a backward
 * @param activations entry i: of the largest unit, as block i of the stage sees them; empty if
 *     there are no such blocks
 * @param queryKeyValues of a micro-batch, as wide as the widest block's; null where sequences are
 *     cut: later slices read the keys and values of earlier ones, so these are kept
 * @param states of a retention, likewise
 * @param kept by unit, between the parts of its backward; null where backwards are whole
 * @param passing what the other blocks do not keep
 */
public record RecomputedBlocks(
        Set<Integer> blocks,
        Set<Integer> again,
        List<LayerActivations> activations,
        @Nullable Tensor queryKeyValues,
        @Nullable Tensor states,
        @Nullable SlotPool<KeptBlocks> kept,
        PassingActivations passing) {

    public static RecomputedBlocks allocate(
            StageScopes scopes, GptSettings settings, StageRole role, StageBudget budget) {
        int lowest = settings.trained().lowestBackward(role);
        Set<Integer> again =
                IntStream.range(lowest, role.layers())
                        .filter(i -> settings.recomputedBlocks().contains(role.firstLayer() + i))
                        .boxed()
                        .collect(Collectors.toCollection(TreeSet::new));
        Set<Integer> blocks =
                IntStream.range(0, role.layers())
                        .filter(i -> i < lowest || again.contains(i))
                        .boxed()
                        .collect(Collectors.toCollection(TreeSet::new));
        PassingActivations passing = PassingActivations.allocate(scopes, settings, role);
        if (blocks.isEmpty()) {
            return new RecomputedBlocks(blocks, again, List.of(), null, null, null, passing);
        }
        BatchShape batch = settings.batchOfPart();
        ShardShape shape = settings.shape(role);
        return new RecomputedBlocks(
                blocks,
                again,
                Carver.carve(
                        scopes.scratch(),
                        "activations of a recomputed block",
                        carver ->
                                LayerActivations.carveShared(
                                        carver, shape, role, batch.largestRows())),
                batch.sliced()
                        ? null
                        : scopes.scratch()
                                .tensor(
                                        "queries, keys and values of a recomputed block",
                                        settings.keptQueryKeyValues(),
                                        batch.microBatchRows(),
                                        shape.queryKeyValueColumns()),
                batch.sliced() || shape.stateColumns() == 0
                        ? null
                        : scopes.scratch()
                                .tensor(
                                        "states of a recomputed block",
                                        DType.F32,
                                        settings.stateRows(),
                                        shape.stateColumns()),
                budget.split() && !again.isEmpty()
                        ? kept(scopes, settings, role, again, budget)
                        : null,
                passing);
    }

    private static SlotPool<KeptBlocks> kept(
            StageScopes scopes,
            GptSettings settings,
            StageRole role,
            Set<Integer> blocks,
            StageBudget budget) {
        BatchShape batch = settings.batchOfPart();
        List<KeptBlocks> rooms = new ArrayList<>();
        for (int i = 0; i < budget.awaitingWeight(); i++) {
            rooms.add(
                    KeptBlocks.allocate(
                            scopes.activations(),
                            scopes.keyValues(),
                            settings.shape(role),
                            role.firstLayer(),
                            batch,
                            settings.keptQueryKeyValues(),
                            blocks,
                            batch.largestRows()));
        }
        return new SlotPool<>(
                "recomputed blocks between backwards of units",
                rooms,
                batch.microBatches() * batch.slices());
    }

    /** Returns whether a block shares its activations. */
    public boolean contains(int block) {
        return blocks.contains(block);
    }

    /** Returns whether a block runs again. */
    public boolean runsAgain(int block) {
        return again.contains(block);
    }

    /**
     * Returns the memory that currently holds the activations of such a block of a unit of n rows.
     */
    LayerActivations activations(int block, int rows, int own) {
        return activations.get(block).first(rows, own);
    }
}
