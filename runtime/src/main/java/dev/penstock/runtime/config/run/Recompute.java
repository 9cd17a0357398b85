package dev.penstock.runtime.config.run;

import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * What backwards compute a second time instead of keeping it from the forward. An order's own
 * recomputes are done in any case.
 */
public sealed interface Recompute {
    /** What does not depend on the model. */
    enum Rule implements Recompute {
        /** Nothing: every unit keeps all its activations. */
        NONE,
        /**
         * Whole units, by ops of the order: a unit keeps the input of its stage, and keys and
         * values where sequences are cut.
         */
        FULL,
        /**
         * Every block by itself, right before its backward: a unit keeps the input of every block,
         * and keys and values where sequences are cut; one block at a time has all its activations.
         */
        BLOCKS
    }

    /**
     * Same as {@link Rule#BLOCKS} for some blocks only.
     *
     * @param blocks indexes of transformer blocks, from 0
     */
    record Given(List<Integer> blocks) implements Recompute {
        public Given {
            blocks = List.copyOf(blocks);
        }
    }

    /** Blocks of a model of {@code layers} that are run again one by one. */
    default Set<Integer> blocks(int layers) {
        return switch (this) {
            case Rule.NONE, Rule.FULL -> Set.of();
            case Rule.BLOCKS -> IntStream.range(0, layers).boxed().collect(Collectors.toSet());
            case Given(List<Integer> blocks) -> new TreeSet<>(blocks);
        };
    }

    /** Whether units are run again as a whole. */
    default boolean units() {
        return this == Rule.FULL;
    }
}
