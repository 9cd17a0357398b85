package dev.penstock.schedules.plan.slices;

import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;

/**
 * TeraPipe's cost: t(i, j) = t(i, 0) + t_ctx(i, j), where t(i, 0) was measured for every length and
 * the context's term is fitted (arXiv 2102.07988, section 3.3).
 */
public final class MeasuredSliceCost implements SliceCost {
    private final ContextTerm.Alone alone;
    private final ContextTerm contextTerm;

    private MeasuredSliceCost(ContextTerm.Alone alone, ContextTerm contextTerm) {
        this.alone = alone;
        this.contextTerm = contextTerm;
    }

    /**
     * The cost that follows from measurements: t(i, 0) runs straight between the lengths that were
     * measured, and straight on beyond the longest. What is shorter than the shortest takes as long
     * as that, so that nobody counts on a gain that was not seen.
     *
     * @param samples without context: one or more (several of a length count as their mean); with
     *     context: at least 2 lengths and 2 contexts, or none at all, then context is free
     * @throws IllegalArgumentException if nothing was measured without context, or the samples do
     *     not decide the context's term
     */
    public static MeasuredSliceCost of(List<SliceSample> samples) {
        NavigableMap<Integer, Long> means = meansAlone(samples);
        if (means.isEmpty()) {
            throw new IllegalArgumentException(
                    "expected a slice without context among the samples, got none");
        }
        ContextTerm.Alone alone = length -> between(means, length);
        boolean context = samples.stream().anyMatch(sample -> sample.context() > 0);
        return new MeasuredSliceCost(
                alone, context ? ContextTerm.fit(samples, alone) : ContextTerm.NONE);
    }

    private static long between(NavigableMap<Integer, Long> means, int length) {
        if (length <= means.firstKey()) {
            return means.firstEntry().getValue();
        }
        Integer above = means.ceilingKey(length);
        int end = above == null ? means.lastKey() : above;
        Map.Entry<Integer, Long> start = means.lowerEntry(end);
        long nanos = means.getOrDefault(end, 0L);
        // of one measured length, a longer slice takes its multiple
        double slope =
                start == null
                        ? (double) nanos / end
                        : (double) (nanos - start.getValue()) / (end - start.getKey());
        return Math.max(0, Math.round(nanos + slope * (length - end)));
    }

    private static NavigableMap<Integer, Long> meansAlone(List<SliceSample> samples) {
        Map<Integer, long[]> sums = new TreeMap<>();
        for (SliceSample sample : samples) {
            if (sample.context() == 0) {
                long[] sum = sums.computeIfAbsent(sample.length(), _ -> new long[2]);
                sum[0] += sample.nanos();
                sum[1]++;
            }
        }
        var means = new TreeMap<Integer, Long>();
        sums.forEach((length, sum) -> means.put(length, Math.round((double) sum[0] / sum[1])));
        return means;
    }

    /** The fitted term and its error. */
    public ContextTerm contextTerm() {
        return contextTerm;
    }

    @Override
    public long nanos(int length, int context) {
        long all = alone.nanos(length) + Math.round(contextTerm.nanos(length, context));
        return Math.max(0, all);
    }
}
