package dev.penstock.schedules.generate.base;

import dev.penstock.schedules.ir.PipelineShape;
import java.util.List;
import java.util.OptionalInt;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * The order in which an interleaved schedule visits its chunks: a group of units through chunk 0,
 * the same group through chunk 1, and so on, then the next group.
 *
 * <pre>
 * k       0 1 2 3 4 5 6 7      groups of 2, 2 chunks
 * chunk   0 0 1 1 0 0 1 1
 * unit    0 1 0 1 2 3 2 3
 * </pre>
 *
 * @param size units of a group
 * @param chunks stages per rank
 */
public record ChunkGroups(int size, int chunks) {
    /** The chunk of forward k; the backward of the same number goes through the mirrored chunk. */
    public int chunk(int k) {
        return k % (size * chunks) / size;
    }

    public int mirroredChunk(int k) {
        return chunks - 1 - chunk(k);
    }

    /** The unit of forward or backward k. */
    public int unit(int k) {
        return k / (size * chunks) * size + k % size;
    }

    /**
     * Groups of the wanted size. Without a wish as many rounds of equal groups as there are times
     * the ranks in the micro-batches, at least one.
     *
     * @throws IllegalArgumentException if the groups do not come out even, or would hang
     */
    public static ChunkGroups ofMicroBatches(String kind, PipelineShape shape, OptionalInt wanted) {
        int microBatches = shape.microBatches();
        int rounds = rounds(microBatches, shape.ranks());
        if (wanted.isEmpty() && microBatches % rounds != 0) {
            throw new IllegalArgumentException(
                    "%s on %d ranks cannot part %d micro-batches into %d equal groups; try %s, or groups of %s"
                            .formatted(
                                    kind,
                                    shape.ranks(),
                                    microBatches,
                                    rounds,
                                    evenNeighbours(microBatches, shape.ranks()),
                                    listed(legalSizes(shape))));
        }
        return ofSlices(kind, shape, wanted);
    }

    /**
     * Groups of all slices of some micro-batches. Without a wish the fewest micro-batches whose
     * slices keep all ranks at work and that come out even; where the rounds of {@link
     * #ofMicroBatches} come out even, one slice per micro-batch gives the same.
     *
     * @throws IllegalArgumentException if the wanted groups do not come out even, or would hang
     */
    public static ChunkGroups ofSlices(String kind, PipelineShape shape, OptionalInt wanted) {
        List<Integer> legal = legalSizes(shape);
        int group = wanted.orElse(legal.getFirst());
        if (!legal.contains(group)) {
            throw new IllegalArgumentException(
                    "%s on %d ranks cannot part %d micro-batches into groups of %d; try groups of %s"
                            .formatted(
                                    kind,
                                    shape.ranks(),
                                    shape.microBatches(),
                                    group,
                                    listed(legal)));
        }
        return new ChunkGroups(group * shape.slices(), shape.chunks());
    }

    /**
     * Sizes in micro-batches, rising; never empty. A group with fewer units than ranks comes round
     * to rank 0 late, which with several groups can hang: the last rank turns to backwards before
     * it has what rank 0 still waits for.
     */
    private static List<Integer> legalSizes(PipelineShape shape) {
        int microBatches = shape.microBatches();
        return IntStream.rangeClosed(1, microBatches)
                .filter(group -> microBatches % group == 0)
                .filter(group -> group == microBatches || group * shape.slices() >= shape.ranks())
                .boxed()
                .toList();
    }

    private static int rounds(int microBatches, int ranks) {
        return Math.max(1, microBatches / ranks);
    }

    private static String evenNeighbours(int microBatches, int ranks) {
        int below = microBatches;
        while (below % rounds(below, ranks) != 0) {
            below--;
        }
        int above = microBatches;
        while (above % rounds(above, ranks) != 0) {
            above++;
        }
        return "%d or %d micro-batches".formatted(below, above);
    }

    private static String listed(List<Integer> sizes) {
        String last = sizes.getLast().toString();
        return sizes.size() == 1
                ? last
                : sizes.subList(0, sizes.size() - 1).stream()
                        .map(String::valueOf)
                        .collect(Collectors.joining(", ", "", " or " + last));
    }
}
