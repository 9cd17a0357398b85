package dev.penstock.schedules.simulate;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * Mean times of things in a step, and of these the median over all steps: what a usual step has,
 * whatever the first ones or a disturbed one took.
 */
final class StepMedians<K> {
    /** Nanoseconds of all in the step, and how many there were. */
    private final Map<K, double[]> inStep;

    private final Map<K, List<Double>> means;

    StepMedians(Comparator<? super K> order) {
        this.inStep = new TreeMap<>(order);
        this.means = new TreeMap<>(order);
    }

    void add(K key, double nanos) {
        double[] sum = inStep.computeIfAbsent(key, _ -> new double[2]);
        sum[0] += nanos;
        sum[1]++;
    }

    /** The mean of the step under way; 0 if there was nothing. */
    double mean(K key) {
        double[] sum = inStep.getOrDefault(key, new double[] {0, 1});
        return sum[0] / sum[1];
    }

    boolean isInStep(K key) {
        return inStep.containsKey(key);
    }

    void endStep() {
        inStep.forEach(
                (key, sum) ->
                        means.computeIfAbsent(key, _ -> new ArrayList<>()).add(sum[0] / sum[1]));
        inStep.clear();
    }

    /** What there was in any step, in order. */
    Set<K> keys() {
        return means.keySet();
    }

    /** Over the steps that have it, the mean of the two in the middle of an even number. */
    long median(K key) {
        return Math.round(median(means.getOrDefault(key, List.of(0.0))));
    }

    /**
     * @param values at least one
     */
    static double median(List<Double> values) {
        List<Double> sorted = values.stream().sorted().toList();
        int middle = sorted.size() / 2;
        return sorted.size() % 2 == 1
                ? sorted.get(middle)
                : (sorted.get(middle - 1) + sorted.get(middle)) / 2;
    }
}
