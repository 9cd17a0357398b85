package dev.penstock.schedules.generate.zerobubble;

/**
 * What no order can beat; an order that reaches it need not be improved.
 *
 * <pre>
 *              way down      way up
 * rank 0     F0 F1 ...          I0  ...       I(last) W(last)
 * rank 1        F0 ...       I0     ...    I(last)
 * rank 2           F0 ... I0    ... I(last)         way home
 * </pre>
 *
 * A rank cannot start before micro-batch 0 has come down to it, nor have more forwards behind it
 * than fit into memory when micro-batch 0 comes back, nor keep more backwards for the weights for
 * the time after its last gradient than fit into memory, and that gradient still has to go home.
 *
 * @param makespan of any order
 * @param span the longest span of any order
 */
record SplitBounds(long makespan, long span) {
    static SplitBounds of(SplitProblem problem) {
        int ranks = problem.ranks();
        int all = problem.microBatches();
        int held = Math.min(problem.limit(), all);
        long[] down = new long[ranks];
        long[] home = new long[ranks];
        for (int rank = 1; rank < ranks; rank++) {
            down[rank] =
                    down[rank - 1]
                            + problem.nanos(rank - 1, SplitPass.FORWARD)
                            + problem.hopNanos(rank - 1);
            home[rank] =
                    home[rank - 1]
                            + problem.nanos(rank - 1, SplitPass.BACKWARD_INPUT)
                            + problem.hopNanos(rank);
        }
        long[] firstGradient = new long[ranks];
        firstGradient[ranks - 1] = down[ranks - 1] + problem.nanos(ranks - 1, SplitPass.FORWARD);
        for (int rank = ranks - 2; rank >= 0; rank--) {
            firstGradient[rank] =
                    firstGradient[rank + 1]
                            + problem.nanos(rank + 1, SplitPass.BACKWARD_INPUT)
                            + problem.hopNanos(rank + 1);
        }
        long weight = problem.nanos(0, SplitPass.BACKWARD_WEIGHT);
        long makespan = 0;
        long span = 0;
        for (int rank = 0; rank < ranks; rank++) {
            long start =
                    Math.max(down[rank], firstGradient[rank] - problem.workNanos(rank, held, 0, 0));
            long end = start + problem.workNanos(rank, all, all, all);
            long lastHome =
                    start + problem.workNanos(rank, all, all, all - held) + home[rank] + weight;
            makespan = Math.max(makespan, Math.max(end, lastHome));
            // rank 0 starts at once and takes the last gradient in
            span = Math.max(span, Math.max(rank == 0 ? end : end - start, lastHome));
        }
        return new SplitBounds(makespan, span);
    }
}
