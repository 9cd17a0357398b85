package dev.penstock.runtime.config.run;

import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * Whose activations leave the device between forward and backward. An order's own offloads are done
 * in any case.
 */
public sealed interface Offload {
    /** What does not depend on the model. */
    enum Rule implements Offload {
        /** Nobody's. */
        NONE,
        /**
         * Those of the first half of all stages, whose units wait longest for their backwards
         * (PipeOffload's selective offload).
         */
        HALF,
        /** Those of all stages. */
        ALL
    }

    /**
     * Those of some stages.
     *
     * @param stages global numbers, from 0
     */
    record Given(List<Integer> stages) implements Offload {
        public Given {
            stages = List.copyOf(stages);
        }
    }

    /** The stages of a pipeline of {@code count} stages. */
    default Set<Integer> stages(int count) {
        return switch (this) {
            case Rule.NONE -> Set.of();
            case Rule.HALF -> first((count + 1) / 2);
            case Rule.ALL -> first(count);
            case Given(List<Integer> stages) -> new TreeSet<>(stages);
        };
    }

    private static Set<Integer> first(int count) {
        return IntStream.range(0, count).boxed().collect(Collectors.toSet());
    }
}
