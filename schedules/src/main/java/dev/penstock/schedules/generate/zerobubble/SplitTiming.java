package dev.penstock.schedules.generate.zerobubble;

import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.List;

/**
 * How long an order with split backwards takes on a plain pipeline, by the recurrence that its
 * dependencies are: a forward waits for the rank before, a backward for the input for the rank
 * after (on the last rank for its forward), a backward for the weights for nobody.
 *
 * @param makespan from the first start to the last end, {@link #NEVER} if the order stands still
 * @param longestSpan the most time between the first start and the last end of one rank: what a
 *     step costs if the next need not wait for a barrier
 * @param allSpans the spans of all ranks together
 */
record SplitTiming(long makespan, long longestSpan, long allSpans)
        implements Comparable<SplitTiming> {
    static final long NEVER = Long.MAX_VALUE;

    private static final SplitTiming STANDS_STILL = new SplitTiming(NEVER, NEVER, NEVER);

    /** The earlier the barrier the better, then the shorter the spans. */
    @Override
    public int compareTo(SplitTiming other) {
        if (makespan != other.makespan) {
            return Long.compare(makespan, other.makespan);
        }
        return longestSpan != other.longestSpan
                ? Long.compare(longestSpan, other.longestSpan)
                : Long.compare(allSpans, other.allSpans);
    }

    static SplitTiming of(SplitOrder order, SplitProblem problem) {
        return new Run(order, problem).run();
    }

    private static final class Run {
        private final List<List<SplitPass>> order;
        private final SplitProblem problem;
        private final int ranks;
        private final long[][] forwardEnds;
        private final long[][] inputEnds;
        private final int[] position;
        private final int[] forwards;
        private final int[] inputs;
        private final long[] first;
        private final long[] clock;

        Run(SplitOrder order, SplitProblem problem) {
            this.order = order.ranks();
            this.problem = problem;
            ranks = problem.ranks();
            forwardEnds = new long[ranks][problem.microBatches()];
            inputEnds = new long[ranks][problem.microBatches()];
            position = new int[ranks];
            forwards = new int[ranks];
            inputs = new int[ranks];
            first = new long[ranks];
            clock = new long[ranks];
        }

        SplitTiming run() {
            var waiting = new ArrayDeque<Integer>();
            for (int rank = 0; rank < ranks; rank++) {
                waiting.add(rank);
            }
            while (!waiting.isEmpty()) {
                int rank = waiting.remove();
                if (advance(rank)) {
                    if (rank > 0) {
                        waiting.add(rank - 1);
                    }
                    if (rank < ranks - 1) {
                        waiting.add(rank + 1);
                    }
                }
            }
            return summary();
        }

        private SplitTiming summary() {
            long longest = 0;
            long all = 0;
            for (int rank = 0; rank < ranks; rank++) {
                if (position[rank] < order.get(rank).size()) {
                    return STANDS_STILL;
                }
                longest = Math.max(longest, clock[rank] - first[rank]);
                all += clock[rank] - first[rank];
            }
            return new SplitTiming(Arrays.stream(clock).max().orElseThrow(), longest, all);
        }

        /** Runs a rank as far as it goes; whether it went on at all. */
        private boolean advance(int rank) {
            int from = position[rank];
            while (position[rank] < order.get(rank).size()) {
                SplitPass pass = order.get(rank).get(position[rank]);
                long ready =
                        switch (pass) {
                            case FORWARD -> forwardReady(rank);
                            case BACKWARD_INPUT -> inputReady(rank);
                            case BACKWARD_WEIGHT -> 0;
                        };
                if (ready == NEVER) {
                    break;
                }
                long start = Math.max(clock[rank], ready);
                if (position[rank] == 0) {
                    first[rank] = start;
                }
                clock[rank] = start + problem.nanos(rank, pass);
                switch (pass) {
                    case FORWARD -> forwardEnds[rank][forwards[rank]++] = clock[rank];
                    case BACKWARD_INPUT -> inputEnds[rank][inputs[rank]++] = clock[rank];
                    case BACKWARD_WEIGHT -> {}
                }
                position[rank]++;
            }
            return position[rank] > from;
        }

        private long forwardReady(int rank) {
            int next = forwards[rank];
            if (rank == 0) {
                return 0;
            }
            return next < forwards[rank - 1]
                    ? forwardEnds[rank - 1][next] + problem.hopNanos(rank - 1)
                    : NEVER;
        }

        private long inputReady(int rank) {
            int next = inputs[rank];
            if (rank == ranks - 1) {
                return next < forwards[rank] ? forwardEnds[rank][next] : NEVER;
            }
            return next < inputs[rank + 1]
                    ? inputEnds[rank + 1][next] + problem.hopNanos(rank + 1)
                    : NEVER;
        }
    }
}
