package dev.penstock.runtime.lengths;

import dev.penstock.actors.spi.StepKind;
import dev.penstock.runtime.data.BatchSource;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.InFlight;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.ToLongFunction;
import java.util.stream.Collectors;

/**
 * The first steps of a run with unequal micro-batches, and how long they take in the simulator.
 *
 * @param sizes of the run
 * @param steps for each step and in it for each replica, the tokens of a sequence of its
 *     micro-batches
 */
public record UnequalSteps(GptSettings sizes, List<List<int[]>> steps) {
    /** Parts of a unit of cost that are told apart: costs may be small numbers. */
    private static final long PARTS = 1_000;

    /** The names of {@link SimulatedArrangement#candidates}. */
    private static final List<String> CANDIDATES = List.of("hill", "rising", "falling", "valley");

    /**
     * Reads the lengths of the first steps.
     *
     * @param data of the run
     */
    public static UnequalSteps of(BatchSource data, GptSettings sizes, int count) {
        int each = sizes.batch().microBatches();
        List<List<int[]>> steps = new ArrayList<>();
        for (long step = 1; step <= count; step++) {
            List<int[]> replicas = new ArrayList<>();
            for (int replica = 0; replica < sizes.batchesOfStep(); replica++) {
                int[] tokens = new int[each];
                for (int m = 0; m < each; m++) {
                    tokens[m] =
                            data.tokens(
                                    StepKind.TRAIN,
                                    step,
                                    replica * each + m,
                                    sizes.shape().context());
                }
                replicas.add(tokens);
            }
            steps.add(replicas);
        }
        return new UnequalSteps(sizes, steps);
    }

    /**
     * Simulated times of a step, in the unit of the costs.
     *
     * @param steps over which they are averaged
     * @param padded if all sequences are as long as the context
     * @param arranged as the run arranges its micro-batches
     * @param arrangements if they were arranged otherwise, by the name of the arrangement
     */
    public record Times(
            int steps, double padded, double arranged, Map<String, Double> arrangements) {
        /** Returns the times for people, as shares of that of padded rows. */
        public String words() {
            return "a simulated step takes %.0f %% of the time of padded rows (%s)"
                    .formatted(
                            100 * arranged / padded,
                            arrangements.entrySet().stream()
                                    .map(
                                            each ->
                                                    "%s %.0f %%"
                                                            .formatted(
                                                                    each.getKey(),
                                                                    100 * each.getValue() / padded))
                                    .collect(Collectors.joining(", ")));
        }
    }

    /**
     * Simulates the steps.
     *
     * @param whole costs of whole sequences
     */
    public Times simulate(Schedule schedule, CostModel whole, InFlight inFlight) {
        ToLongFunction<int[]> makespan = tokens -> makespan(schedule, whole, inFlight, tokens);
        int count = sizes.batch().microBatches();
        int[] full = new int[count];
        Arrays.fill(full, sizes.shape().context());
        Map<String, Double> arrangements = new LinkedHashMap<>();
        List<int[]> candidates = SimulatedArrangement.candidates(count);
        for (int i = 0; i < candidates.size(); i++) {
            int[] order = candidates.get(i);
            arrangements.put(
                    CANDIDATES.get(i),
                    mean(tokens -> makespan.applyAsLong(arranged(tokens, order))));
        }
        return new Times(
                steps.size(),
                (double) makespan.applyAsLong(full) / PARTS,
                mean(makespan),
                arrangements);
    }

    /** The step of a replica that takes longest is that of all, on average over the steps. */
    private double mean(ToLongFunction<int[]> makespan) {
        long sum = 0;
        for (List<int[]> replicas : steps) {
            sum += replicas.stream().mapToLong(makespan).max().orElseThrow();
        }
        return (double) sum / PARTS / steps.size();
    }

    private long makespan(Schedule schedule, CostModel whole, InFlight inFlight, int[] tokens) {
        var costs = new LengthCosts(whole, sizes.shape(), sizes.partition(), tokens, PARTS);
        return ScheduleSimulator.simulate(schedule, costs, inFlight).makespanNanos();
    }

    private static int[] arranged(int[] tokens, int[] order) {
        int[] sorted = Arrays.stream(tokens).sorted().toArray();
        return Arrays.stream(order).map(index -> sorted[index]).toArray();
    }
}
