package dev.penstock.schedules.plan.work;

import java.util.List;
import java.util.Optional;
import java.util.PriorityQueue;
import java.util.stream.IntStream;

/**
 * Cuts equal blocks into contiguous stages, where stages differ by what else they hold (embedding,
 * head) and by their devices.
 *
 * <pre>
 * stage     0           1         2         3
 *       [E | 3 blocks] [4      ] [4      ] [2 | H]     the head weighs as much as two blocks
 * </pre>
 */
public final class StagePartitioner {
    /** What a stage costs and whether it fits; both may not get better with more blocks. */
    public interface StageLoad {
        /** Nanoseconds of stage {@code stage} with this many blocks. */
        long nanos(int stage, int blocks);

        /** Whether the stage's device can hold this many blocks. */
        boolean fits(int stage, int blocks);
    }

    private StagePartitioner() {}

    /**
     * The partition whose most expensive stage is cheapest; among these, if a block costs the same
     * on every stage, one with the smallest sum of squared costs. Every stage gets a block, unless
     * there are more stages than blocks: then the last holds the head alone, and if need be the
     * first the embedding alone.
     *
     * @return blocks of each stage; empty if none fits
     * @throws IllegalArgumentException if the stages are more than the blocks and two
     */
    public static Optional<List<Integer>> partition(int blocks, int stages, StageLoad load) {
        if (stages < 1 || blocks < 1 || stages > blocks + 2) {
            throw new IllegalArgumentException(
                    "%d blocks fill 1 to %d stages, got %d; try fewer stages"
                            .formatted(blocks, blocks + 2, stages));
        }
        var counts = new int[stages];
        for (int stage = 0; stage < stages; stage++) {
            counts[stage] = least(stage, blocks, stages);
            if (!load.fits(stage, counts[stage])) {
                return Optional.empty();
            }
        }
        int left = blocks - IntStream.of(counts).sum();
        // always the stage that is cheapest with one block more: no other choice has a lower most
        var next = new PriorityQueue<Next>();
        for (int stage = 0; stage < stages; stage++) {
            offer(next, stage, counts[stage], load);
        }
        for (; left > 0; left--) {
            Next taken = next.poll();
            if (taken == null) {
                return Optional.empty();
            }
            counts[taken.stage]++;
            offer(next, taken.stage, counts[taken.stage], load);
        }
        return Optional.of(IntStream.of(counts).boxed().toList());
    }

    private static void offer(PriorityQueue<Next> next, int stage, int count, StageLoad load) {
        if (load.fits(stage, count + 1)) {
            next.add(new Next(load.nanos(stage, count + 1), stage));
        }
    }

    private static int least(int stage, int blocks, int stages) {
        boolean headAlone = stages > 1 && stage == stages - 1 && stages > blocks;
        boolean embeddingAlone = stages > 1 && stage == 0 && stages > blocks + 1;
        return headAlone || embeddingAlone ? 0 : 1;
    }

    private record Next(long nanos, int stage) implements Comparable<Next> {
        @Override
        public int compareTo(Next other) {
            return nanos != other.nanos
                    ? Long.compare(nanos, other.nanos)
                    : Integer.compare(stage, other.stage);
        }
    }
}
