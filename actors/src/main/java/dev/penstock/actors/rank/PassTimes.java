package dev.penstock.actors.rank;

/**
 * When the ops of a finished pass ran, on the clock of {@link System#nanoTime}; entry i is the i-th
 * op of the rank's program.
 *
 * @param starts when each op began; a receive began to wait
 * @param ends when each op was complete; the last one with all sums and gathers of the program
 * @param collectives what gathers and sums took, see {@code RankStep.collectiveNanos}
 */
@SuppressWarnings("ArrayRecordComponent") // a value on its way to reports; nobody compares it
record PassTimes(long[] starts, long[] ends, long[] collectives) {
    static final PassTimes NONE = new PassTimes(new long[0], new long[0], new long[0]);
}
