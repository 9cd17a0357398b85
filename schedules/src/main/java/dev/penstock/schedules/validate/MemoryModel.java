package dev.penstock.schedules.validate;

import dev.penstock.schedules.ir.LayerRange;
import dev.penstock.schedules.ir.PipelineShape;
import java.util.Collections;
import java.util.List;

/**
 * What the things weigh that a schedule makes come and go, in bytes. What is there throughout (own
 * parameters, optimizer state, buffers) is no part of it; see {@link MemoryLimit#heldThroughout}.
 *
 * @param activationBytes entry [stage][slice]: a unit from its forward to its backward (its
 *     backward for the weights where that is split)
 * @param inputBytes entry [stage][slice]: a unit that holds its input alone until its recompute
 * @param weightBytes entry [stage][slice]: what a unit holds besides from its backward for the
 *     input to that for the weights: blocks recomputed in the one are kept for the other
 * @param gatheredBytes entry [stage][layer]: a layer's parameters while they are gathered
 */
public record MemoryModel(
        List<List<Long>> activationBytes,
        List<List<Long>> inputBytes,
        List<List<Long>> weightBytes,
        List<List<Long>> gatheredBytes) {
    public MemoryModel {
        activationBytes = copied(activationBytes);
        inputBytes = copied(inputBytes);
        weightBytes = copied(weightBytes);
        gatheredBytes = copied(gatheredBytes);
    }

    /** Of stages whose backwards for the input make nothing that stays. */
    public MemoryModel(
            List<List<Long>> activationBytes,
            List<List<Long>> inputBytes,
            List<List<Long>> gatheredBytes) {
        this(
                activationBytes,
                inputBytes,
                activationBytes.stream()
                        .map(slices -> Collections.nCopies(slices.size(), 0L))
                        .toList(),
                gatheredBytes);
    }

    private static List<List<Long>> copied(List<List<Long>> bytes) {
        if (bytes.stream().flatMap(List::stream).anyMatch(b -> b < 0)) {
            throw new IllegalArgumentException("nothing weighs less than 0 bytes, got " + bytes);
        }
        return bytes.stream().map(List::copyOf).toList();
    }

    /** Equal stages of one layer and equal slices. */
    public static MemoryModel uniform(
            PipelineShape shape, long activationBytes, long inputBytes, long gatheredBytes) {
        return new MemoryModel(
                every(shape.stages(), shape.slices(), activationBytes),
                every(shape.stages(), shape.slices(), inputBytes),
                every(shape.stages(), 1, gatheredBytes));
    }

    private static List<List<Long>> every(int stages, int count, long bytes) {
        return Collections.nCopies(stages, Collections.nCopies(count, bytes));
    }

    /**
     * @throws IllegalArgumentException unless every stage and slice of the shape has its weight
     */
    void requireFits(PipelineShape shape) {
        boolean fits =
                gatheredBytes.size() == shape.stages()
                        && fits(activationBytes, shape)
                        && fits(inputBytes, shape)
                        && fits(weightBytes, shape);
        if (!fits) {
            throw new IllegalArgumentException(
                    "expected the bytes of %d stages and %d slices, got %d stages of activations, %d of inputs, %d of what backwards keep, %d of parameters"
                            .formatted(
                                    shape.stages(),
                                    shape.slices(),
                                    activationBytes.size(),
                                    inputBytes.size(),
                                    weightBytes.size(),
                                    gatheredBytes.size()));
        }
    }

    private static boolean fits(List<List<Long>> bytes, PipelineShape shape) {
        return bytes.size() == shape.stages()
                && bytes.stream().allMatch(slices -> slices.size() == shape.slices());
    }

    long activation(int stage, int slice) {
        return activationBytes.get(stage).get(slice);
    }

    long input(int stage, int slice) {
        return inputBytes.get(stage).get(slice);
    }

    long weight(int stage, int slice) {
        return weightBytes.get(stage).get(slice);
    }

    long layer(int stage, int layer) {
        return gatheredBytes.get(stage).get(layer);
    }

    /** One behind the last layer of a range, of those that the stage has. */
    int end(int stage, LayerRange range) {
        return Math.min(gatheredBytes.get(stage).size() - 1, range.last()) + 1;
    }
}
