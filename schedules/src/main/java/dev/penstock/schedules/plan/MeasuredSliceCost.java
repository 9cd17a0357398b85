package dev.penstock.schedules.plan;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * TeraPipe's cost: t(i, j) = t(i, 0) + t_ctx(i, j), where t(i, 0) was measured for every length and
 * the context's term is fitted (arXiv 2102.07988, section 3.3).
 */
public final class MeasuredSliceCost implements SliceCost {
    private final Map<Integer, Long> alone;
    private final ContextTerm contextTerm;

    private MeasuredSliceCost(Map<Integer, Long> alone, ContextTerm contextTerm) {
        this.alone = alone;
        this.contextTerm = contextTerm;
    }

    /**
     * The cost that follows from measurements.
     *
     * @param samples without context: one or more for every length that will be asked for (several
     *     count as their mean); with context: at least 2 lengths and 2 contexts, or none at all,
     *     then context is free
     * @throws IllegalArgumentException if a length with context was not measured without, or the
     *     samples do not decide the context's term
     */
    public static MeasuredSliceCost of(List<SliceSample> samples) {
        Map<Integer, long[]> sums = new TreeMap<>();
        for (SliceSample sample : samples) {
            if (sample.context() == 0) {
                long[] sum = sums.computeIfAbsent(sample.length(), _ -> new long[2]);
                sum[0] += sample.nanos();
                sum[1]++;
            }
        }
        Map<Integer, Long> alone = new TreeMap<>();
        sums.forEach((length, sum) -> alone.put(length, Math.round((double) sum[0] / sum[1])));
        boolean context = samples.stream().anyMatch(sample -> sample.context() > 0);
        return new MeasuredSliceCost(
                alone,
                context
                        ? ContextTerm.fit(samples, length -> measured(alone, length))
                        : ContextTerm.NONE);
    }

    /** The fitted term and its error. */
    public ContextTerm contextTerm() {
        return contextTerm;
    }

    @Override
    public long nanos(int length, int context) {
        long all = measured(alone, length) + Math.round(contextTerm.nanos(length, context));
        return Math.max(0, all);
    }

    private static long measured(Map<Integer, Long> alone, int length) {
        Long nanos = alone.get(length);
        if (nanos == null) {
            throw new IllegalArgumentException(
                    "a slice of %d tokens was not measured without context, only of %s"
                            .formatted(length, alone.keySet()));
        }
        return nanos;
    }
}
