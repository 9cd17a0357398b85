package dev.penstock.actors.rank;

/**
 * When the ops of a finished pass ran, on the clock of {@link System#nanoTime}; entry i belongs to
 * the i-th op of the rank's program.
 *
 * @param starts when each op began; for a receive, when it began to wait
 * @param ends when each op was complete; for the last one, when all sums and gathers of the program
 *     were
 * @param collectives what gathers and sums took, see {@code RankStep.collectiveNanos}
 * @param copies what copies took, see {@code RankStep.copyNanos}
 */
record PassTimes(long[] starts, long[] ends, long[] collectives, long[] copies) {
    static final PassTimes NONE = new PassTimes(new long[0], new long[0], new long[0], new long[0]);
}
