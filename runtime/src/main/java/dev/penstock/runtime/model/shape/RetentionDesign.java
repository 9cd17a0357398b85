package dev.penstock.runtime.model.shape;

import java.util.List;
import java.util.stream.IntStream;

/**
 * Retention in the place of softmax attention (Sun et al., arXiv 2307.08621).
 *
 * @param valueSize columns of a head's values
 * @param gated whether a gate of the block's input opens what leaves the heads
 * @param decay how heads forget
 */
public record RetentionDesign(int valueSize, boolean gated, Decay decay) {
    /** The decays of heads a = 0 .. h-1. */
    public enum Decay {
        /** {@code 1 - 2^(-5-a)}: the paper's equation 8. */
        USUAL,
        /**
         * {@code 1 - x}, x from 1/32 to 1/512 in equal steps of its logarithm: the large models'.
         */
        LARGE,
        /** 1: nothing is forgotten. */
        NONE
    }

    public RetentionDesign {
        if (valueSize < 1) {
            throw new IllegalArgumentException(
                    "heads have values of 1 column or more, got " + valueSize);
        }
    }

    /** Returns the decay of each of so many heads. */
    List<Double> decays(int heads) {
        return IntStream.range(0, heads).mapToObj(head -> decay(head, heads)).toList();
    }

    private double decay(int head, int heads) {
        return switch (decay) {
            case USUAL -> 1 - StrictMath.pow(2, -5 - head);
            case LARGE -> {
                double share = heads == 1 ? 0 : (double) head / (heads - 1);
                yield 1 - StrictMath.pow(2, -5 - 4 * share);
            }
            case NONE -> 1.0;
        };
    }
}
