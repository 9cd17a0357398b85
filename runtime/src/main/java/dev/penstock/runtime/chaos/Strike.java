package dev.penstock.runtime.chaos;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;

/**
 * A fault that comes from outside the run, once the run has done a step.
 *
 * @param node it is meant for; the seed that keeps the run where the kind says so
 * @param length of what ends again
 */
record Strike(Kind kind, long step, String node, Duration length) {
    /** What is done. */
    enum Kind {
        KILL_KEEPER(2),
        KILL_NODE(3),
        KILL_DRIVER(2),
        RESET(2),
        CUT(2),
        FULL_DISK(2),
        FULL_MEMORY(2),
        FLIPPED_BIT(2);

        private final int weight;

        Kind(int weight) {
            this.weight = weight;
        }

        /** Without one nobody would read a checkpoint, or open links. */
        private boolean needsAWorkersDeath() {
            return this == FLIPPED_BIT || this == FULL_MEMORY;
        }

        /** Whether it needs a limit to what a process may write. */
        boolean fills() {
            return this == FULL_DISK || this == FULL_MEMORY;
        }
    }

    private static final int SHORTEST_MILLIS = 500;
    private static final int LONGEST_MILLIS = 9_000;

    /**
     * Draws strikes at different times of a run, the first ones first: the same random numbers give
     * the same ones.
     *
     * @param kinds that this machine allows
     * @param seeds and {@code workers} by name
     * @param steps of the run; the last fifth is left to come to an end in
     */
    static List<Strike> draw(
            Random random,
            int count,
            List<Kind> kinds,
            List<String> seeds,
            List<String> workers,
            long steps) {
        List<String> all = Stream.concat(seeds.stream(), workers.stream()).toList();
        List<Kind> weighted = new ArrayList<>();
        kinds.forEach(kind -> weighted.addAll(Collections.nCopies(kind.weight, kind)));
        List<Strike> strikes = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            Kind kind = pick(random, weighted);
            long length = SHORTEST_MILLIS + (long) random.nextInt(LONGEST_MILLIS - SHORTEST_MILLIS);
            strikes.add(
                    new Strike(
                            kind,
                            1 + random.nextLong(Math.max(1, steps * 4 / 5)),
                            pick(random, kind.needsAWorkersDeath() ? workers : all),
                            Duration.ofMillis(length)));
        }
        strikes.sort(Comparator.comparingLong(Strike::step));
        return strikes;
    }

    private static <T> T pick(Random random, List<T> from) {
        return from.get(random.nextInt(from.size()));
    }

    /** For people, before and after. */
    String describe() {
        double seconds = length.toMillis() / 1e3;
        return switch (kind) {
            case KILL_KEEPER -> "kill the seed that keeps the run after step %d".formatted(step);
            case KILL_NODE -> "kill %s after step %d".formatted(node, step);
            case KILL_DRIVER -> "kill the media driver after step %d".formatted(step);
            case RESET -> "reset all connections to %s after step %d".formatted(node, step);
            case CUT ->
                    "nothing reaches %s for %.1f s after step %d".formatted(node, seconds, step);
            case FULL_DISK ->
                    "full disk at the seed that keeps the run for %.1f s after step %d"
                            .formatted(seconds, step);
            case FULL_MEMORY ->
                    "full shared memory for %.1f s, and kill %s after step %d"
                            .formatted(seconds, node, step);
            case FLIPPED_BIT ->
                    "flip a bit of the newest checkpoint and kill %s after step %d"
                            .formatted(node, step);
        };
    }
}
