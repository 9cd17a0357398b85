package dev.penstock.runtime.model.shape;

import dev.penstock.schedules.plan.swap.SwapCuts;
import dev.penstock.schedules.plan.swap.SwapPart;
import dev.penstock.schedules.plan.swap.SwapStep;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * Stages that pass through a rank's memory one after another, cut so that loading hides behind
 * computing.
 *
 * @param tokens of a micro-batch
 * @param microBatches of a step
 * @param intensity floating-point operations for which the rank takes as long as for loading a byte
 */
public record SwapPartition(ModelShape shape, int tokens, int microBatches, double intensity) {
    /** Of a step's operations, where nothing runs twice. */
    private static final double FORWARD_SHARE = 1.0 / 3;

    /**
     * Returns the cut of the shortest step; the first stage may be the embedding alone, the last
     * one the head.
     *
     * @return empty if there are not as many layers
     */
    public Optional<StagePartition> into(int stages) {
        return new SwapCuts(parts(), new SwapStep(microBatches), Long.MAX_VALUE)
                .into(stages)
                .map(SwapPartition::withoutEnds)
                .map(StagePartition::new);
    }

    /** The embedding and the head are parts, but no layers. */
    private static List<Integer> withoutEnds(List<Integer> sizes) {
        List<Integer> layers = new ArrayList<>(sizes);
        layers.set(0, layers.getFirst() - 1);
        layers.set(layers.size() - 1, layers.getLast() - 1);
        return layers;
    }

    /** Returns the micro-batches from which on no stage waits for its parameters in the forward. */
    public int enough(StagePartition partition) {
        return SwapStep.enough(segments(partition));
    }

    private List<SwapPart> segments(StagePartition partition) {
        List<SwapPart> parts = parts();
        List<SwapPart> segments = new ArrayList<>();
        int from = 0;
        for (int stage = 0; stage < partition.stages(); stage++) {
            StageRole role = partition.role(stage);
            int count = role.layers() + (role.first() ? 1 : 0) + (role.last() ? 1 : 0);
            segments.add(SwapPart.together(parts.subList(from, from + count)));
            from += count;
        }
        return segments;
    }

    /**
     * Returns the micro-batches from which on a step, with its update of all that is on disk, is a
     * share as fast as in memory, where an update takes no time.
     *
     * @param share above 0, below 1
     * @param state of the optimizer
     * @param again whether forwards run twice
     */
    public int reaching(
            StagePartition partition, double share, OptimizerState state, boolean again) {
        List<SwapPart> segments = segments(partition);
        double bytes = segments.stream().mapToLong(SwapPart::bytes).sum();
        double moments = 2.0 * state.bytes(state.unit()) / (Float.BYTES * state.unit());
        double update = 2 * (1 + moments) * bytes; // all of it is read and written
        return SwapStep.reaching(
                again ? segments.stream().map(SwapPart::forwardAgain).toList() : segments,
                update,
                share);
    }

    private List<SwapPart> parts() {
        long table = (long) shape.vocabulary() * shape.width();
        long positions = (long) shape.addedRows() * shape.width();
        List<SwapPart> parts = new ArrayList<>();
        parts.add(part(table + positions, 0)); // a look-up is no work
        for (int layer = 0; layer < shape.layers(); layer++) {
            parts.add(part(shape.layerMatrixParameters(layer), shape.layerFlopsPerToken(layer)));
        }
        parts.add(part(table, shape.headFlopsPerToken()));
        return parts;
    }

    /** In units of loading a byte. */
    private SwapPart part(long parameters, long flopsPerToken) {
        long bytes = parameters * Float.BYTES;
        double all = flopsPerToken * (double) tokens / intensity;
        return new SwapPart(bytes, all * FORWARD_SHARE, all * (1 - FORWARD_SHARE), bytes);
    }
}
