package dev.penstock.schedules.generate;

import dev.penstock.schedules.ir.PipelineShape;
import java.util.List;
import java.util.OptionalInt;
import java.util.stream.IntStream;

/**
 * How many micro-batches go through a chunk before the next chunk's turn. Groups are equal, and
 * either there is one, or each has at least as many micro-batches as there are ranks: with fewer,
 * the first would wait for what its own next group is in the way of.
 */
final class InterleavedGroups {
    private InterleavedGroups() {}

    /**
     * The size of a group.
     *
     * @param given by the user; else as many groups as fit
     * @throws IllegalArgumentException with the numbers that would do
     */
    static int size(String kind, PipelineShape shape, OptionalInt given) {
        int microBatches = shape.microBatches();
        if (given.isPresent()) {
            List<Integer> legal = sizes(microBatches, shape.ranks());
            if (!legal.contains(given.getAsInt())) {
                throw new IllegalArgumentException(
                        "%s on %d ranks cannot part %d micro-batches into groups of %d; try groups of %s"
                                .formatted(
                                        kind,
                                        shape.ranks(),
                                        microBatches,
                                        given.getAsInt(),
                                        either(legal)));
            }
            return given.getAsInt();
        }
        if (!parts(microBatches, shape.ranks())) {
            int below = microBatches - 1;
            while (!parts(below, shape.ranks())) {
                below--;
            }
            int above = microBatches + 1;
            while (!parts(above, shape.ranks())) {
                above++;
            }
            throw new IllegalArgumentException(
                    "%s on %d ranks cannot part %d micro-batches into %d equal groups; try %d or %d micro-batches, or groups of %s"
                            .formatted(
                                    kind,
                                    shape.ranks(),
                                    microBatches,
                                    rounds(microBatches, shape.ranks()),
                                    below,
                                    above,
                                    either(sizes(microBatches, shape.ranks()))));
        }
        return microBatches / rounds(microBatches, shape.ranks());
    }

    private static int rounds(int microBatches, int ranks) {
        return Math.max(1, microBatches / ranks);
    }

    private static boolean parts(int microBatches, int ranks) {
        return microBatches % rounds(microBatches, ranks) == 0;
    }

    private static List<Integer> sizes(int microBatches, int ranks) {
        return IntStream.rangeClosed(Math.min(ranks, microBatches), microBatches)
                .filter(size -> microBatches % size == 0)
                .boxed()
                .toList();
    }

    private static String either(List<Integer> numbers) {
        List<String> words = numbers.stream().map(String::valueOf).toList();
        return words.size() == 1
                ? words.getFirst()
                : String.join(", ", words.subList(0, words.size() - 1)) + " or " + words.getLast();
    }
}
