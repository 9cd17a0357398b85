package dev.penstock.runtime.report;

import java.util.Arrays;

/** Makes long curves short without hiding their peaks. */
final class Thinning {
    private Thinning() {}

    /**
     * Drops what is not finite; of more than {@code 2 * buckets} points keeps the lowest and the
     * highest of each of {@code buckets} runs of neighbours.
     *
     * @return x and y
     */
    static double[][] thin(double[] x, double[] y, int buckets) {
        int[] finite = finite(y);
        int[] kept = finite.length <= 2 * buckets ? finite : extremes(finite, y, buckets);
        double[][] points = new double[2][kept.length];
        for (int i = 0; i < kept.length; i++) {
            points[0][i] = x[kept[i]];
            points[1][i] = y[kept[i]];
        }
        return points;
    }

    private static int[] finite(double[] y) {
        int[] indices = new int[y.length];
        int count = 0;
        for (int i = 0; i < y.length; i++) {
            if (Double.isFinite(y[i])) {
                indices[count++] = i;
            }
        }
        return Arrays.copyOf(indices, count);
    }

    private static int[] extremes(int[] indices, double[] y, int buckets) {
        int[] kept = new int[2 * buckets];
        for (int bucket = 0; bucket < buckets; bucket++) {
            int from = (int) ((long) bucket * indices.length / buckets);
            int to = (int) ((bucket + 1L) * indices.length / buckets);
            int low = indices[from];
            int high = indices[from];
            for (int i = from; i < to; i++) {
                low = y[indices[i]] < y[low] ? indices[i] : low;
                high = y[indices[i]] > y[high] ? indices[i] : high;
            }
            kept[2 * bucket] = Math.min(low, high);
            kept[2 * bucket + 1] = Math.max(low, high);
        }
        return kept;
    }
}
