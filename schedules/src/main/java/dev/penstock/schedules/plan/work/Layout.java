package dev.penstock.schedules.plan.work;

import java.util.Collections;
import java.util.List;

/**
 * How devices are divided. Every pipeline rank has the devices that follow those of the rank before
 * it: the shards of a replica stand together, then the replicas, so that the most talkative
 * neighbours are nearest.
 *
 * <pre>
 *   shards [1, 2], 2 replicas      rank 0: devices 0 | 1        rank 1: devices 2 3 | 4 5
 * </pre>
 *
 * @param pipeline ranks of the pipeline
 * @param tensor the most shards that a rank cuts its matrices into
 * @param data replicas
 * @param shards entry r is the shards of rank r; empty: {@code tensor} on every rank
 */
public record Layout(int pipeline, int tensor, int data, List<Integer> shards) {
    public Layout {
        if (pipeline < 1 || tensor < 1 || data < 1) {
            throw new IllegalArgumentException(
                    "a layout needs 1 of each or more, got pipeline %d, tensor %d, data %d"
                            .formatted(pipeline, tensor, data));
        }
        shards = shards.isEmpty() ? Collections.nCopies(pipeline, tensor) : List.copyOf(shards);
        if (shards.size() != pipeline
                || Collections.max(shards) != tensor
                || Collections.min(shards) < 1) {
            throw new IllegalArgumentException(
                    "expected shards of %d ranks, 1 to %d, got %s"
                            .formatted(pipeline, tensor, shards));
        }
    }

    /** Ranks with equal numbers of shards. */
    public Layout(int pipeline, int tensor, int data) {
        this(pipeline, tensor, data, List.of());
    }

    /** Ranks with these numbers of shards. */
    public static Layout ofShards(List<Integer> shards, int data) {
        return new Layout(shards.size(), Collections.max(shards), data, shards);
    }

    /** Shards of a rank's matrices. */
    public int shardsOf(int rank) {
        return shards.get(rank);
    }

    /** Whether ranks have different numbers of shards. */
    public boolean isUneven() {
        return Collections.min(shards) != tensor;
    }

    /** The first device of a rank. */
    public int firstDevice(int rank) {
        int before = 0;
        for (int r = 0; r < rank; r++) {
            before += shards.get(r);
        }
        return before * data;
    }

    /** Devices of one pipeline rank, all shards and replicas. */
    public int devicesOf(int rank) {
        return shards.get(rank) * data;
    }

    /** All devices in use. */
    public int devices() {
        return firstDevice(pipeline);
    }

    /**
     * Into how many parts shards cut a tensor that travels to another rank: one each, but where
     * ranks have different numbers, each sends all of it.
     */
    public int boundaryParts() {
        return isUneven() ? 1 : tensor;
    }

    /** How many shards of rank {@code to} get what one of rank {@code from} sends. */
    public int copies(int from, int to) {
        return Math.max(1, shards.get(to) / shards.get(from));
    }

    /** Shards as configurations give them: {@code 2} on every rank, or {@code [1, 2]}. */
    public String describeShards() {
        return isUneven() ? shards.toString() : Integer.toString(tensor);
    }
}
