package dev.penstock.runtime.lengths;

import dev.penstock.runtime.data.rows.Arrangement;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.StagePartition;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.InFlight;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The arrangement with which an order takes the least time in the simulator, searched anew for
 * every set of lengths and remembered for the latest ones. It follows from lengths, order and costs
 * alone, so every process of a run finds the same. Safe to use from any thread.
 */
public final class SimulatedArrangement implements Arrangement {
    /** Sets of lengths that are remembered: some steps of all ranks of a process. */
    private static final int REMEMBERED = 64;

    /** Units of an order above which none is searched while a run waits for it. */
    private static final int MOST_UNITS = 1 << 16;

    private final Schedule schedule;
    private final InFlight inFlight;
    private final ModelShape model;
    private final StagePartition partition;
    private final CostModel whole;
    private final Map<List<Integer>, int[]> known = new LinkedHashMap<>();

    /**
     * @param whole costs of whole sequences, equal on all ranks and in all processes
     */
    public SimulatedArrangement(
            Schedule schedule,
            InFlight inFlight,
            ModelShape model,
            StagePartition partition,
            CostModel whole) {
        this.schedule = schedule;
        this.inFlight = inFlight;
        this.model = model;
        this.partition = partition;
        this.whole = whole;
    }

    @Override
    public synchronized int[] of(int[] tokens) {
        List<Integer> key = new ArrayList<>();
        for (int each : tokens) {
            key.add(each);
        }
        int[] found = known.get(key);
        if (found == null) {
            found = search(tokens);
            if (known.size() == REMEMBERED) {
                known.remove(known.keySet().iterator().next());
            }
            known.put(key, found);
        }
        return found.clone();
    }

    private int[] search(int[] tokens) {
        List<int[]> candidates = candidates(tokens.length);
        long units = (long) schedule.shape().stages() * tokens.length * schedule.shape().slices();
        int[] best = candidates.getFirst();
        if (units > MOST_UNITS || tokens[0] == tokens[tokens.length - 1]) {
            return best;
        }
        long least = Long.MAX_VALUE;
        for (int[] candidate : candidates) {
            long makespan = makespan(tokens, candidate);
            if (makespan < least) {
                least = makespan;
                best = candidate;
            }
        }
        return best;
    }

    /** Orders to try, the most likely first. */
    static List<int[]> candidates(int count) {
        return List.of(
                Arrangement.hill(count),
                Arrangement.rising(count),
                Arrangement.falling(count),
                Arrangement.valley(count));
    }

    /**
     * Returns how long a step takes in the simulator.
     *
     * @param tokens of the micro-batches, rising
     * @param order as {@link Arrangement#of} returns it
     */
    public long makespan(int[] tokens, int[] order) {
        int[] arranged = new int[order.length];
        for (int p = 0; p < order.length; p++) {
            arranged[p] = tokens[order[p]];
        }
        return ScheduleSimulator.simulate(
                        schedule, new LengthCosts(whole, model, partition, arranged), inFlight)
                .makespanNanos();
    }
}
