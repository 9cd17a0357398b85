package dev.penstock.runtime.speed;

import java.util.Arrays;

/** Measures how long work takes that can be done again and again. */
public final class Repeated {
    private Repeated() {}

    /**
     * Returns the median of as many runs as fit into the time, after a warm-up of the same length.
     *
     * @param nanos of each of both
     * @param leastRuns so many at least, however long they take
     * @return seconds
     */
    public static double seconds(Runnable work, long nanos, int leastRuns) {
        return median(times(work, nanos, leastRuns));
    }

    /** The same of the fastest run, on which other load of the machine weighs least. */
    static double fewestSeconds(Runnable work, long nanos, int leastRuns) {
        return Arrays.stream(times(work, nanos, leastRuns)).min().orElseThrow();
    }

    private static double[] times(Runnable work, long nanos, int leastRuns) {
        long warmUntil = System.nanoTime() + nanos;
        int runs = 0;
        while (System.nanoTime() < warmUntil || runs < leastRuns) {
            work.run();
            runs++;
        }
        double[] times = new double[runs];
        for (int i = 0; i < runs; i++) {
            long start = System.nanoTime();
            work.run();
            times[i] = (System.nanoTime() - start) * 1e-9;
        }
        return times;
    }

    /** Returns the middle one of the values, the upper one of two. */
    public static double median(double[] values) {
        double[] sorted = values.clone();
        Arrays.sort(sorted);
        return sorted[sorted.length / 2];
    }
}
