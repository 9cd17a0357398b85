package dev.penstock.schedules.simulate;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.OpText;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.CriticalPath.Activity;
import dev.penstock.schedules.simulate.CriticalPath.Step;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * A critical path in short: what it spends its time with, and on which ranks it is when.
 *
 * @param shares by kind of op, the largest first
 * @param legs in their order; steps without any time are left out
 */
public record CriticalPathSummary(long makespanNanos, List<Share> shares, List<Leg> legs) {
    public CriticalPathSummary {
        shares = List.copyOf(shares);
        legs = List.copyOf(legs);
    }

    /**
     * The time of one kind of op.
     *
     * @param kind such as {@code backward-input}; {@code transfer}, {@code gather}, {@code reduce}
     * @param share of the whole path
     */
    public record Share(String kind, long nanos, double share) {}

    /**
     * A part of the path on one rank, or on the way from it.
     *
     * @param ops how many
     */
    public record Leg(
            int rank,
            Activity activity,
            String firstOp,
            String lastOp,
            int ops,
            long fromNanos,
            long toNanos) {}

    /** The summary of a path through this schedule. */
    public static CriticalPathSummary of(CriticalPath path, Schedule schedule) {
        Map<String, Long> times = new TreeMap<>();
        var legs = new ArrayList<Leg>();
        for (Step step : path.steps()) {
            if (step.nanos() > 0) {
                times.merge(kind(step), step.nanos(), Long::sum);
                add(legs, step, OpText.print(step.place().op(), schedule.shape()));
            }
        }
        double all = Math.max(1, path.makespanNanos());
        return new CriticalPathSummary(
                path.makespanNanos(),
                times.entrySet().stream()
                        .map(t -> new Share(t.getKey(), t.getValue(), t.getValue() / all))
                        .sorted((a, b) -> Long.compare(b.nanos(), a.nanos()))
                        .toList(),
                legs);
    }

    private static void add(List<Leg> legs, Step step, String op) {
        int rank = step.place().rank();
        Leg last = legs.isEmpty() ? null : legs.getLast();
        boolean goesOn = last != null && last.rank() == rank && last.activity() == step.activity();
        if (last != null && goesOn) {
            legs.set(
                    legs.size() - 1,
                    new Leg(
                            rank,
                            last.activity(),
                            last.firstOp(),
                            op,
                            last.ops() + 1,
                            last.fromNanos(),
                            step.toNanos()));
        } else {
            legs.add(new Leg(rank, step.activity(), op, op, 1, step.fromNanos(), step.toNanos()));
        }
    }

    private static String kind(Step step) {
        return switch (step.activity()) {
            case ON_LINK, UNDER_WAY -> "transfer";
            case RUNS, BACKGROUND -> kind(step.place().op());
        };
    }

    private static String kind(Op op) {
        return switch (op) {
            case Op.Compute compute -> ComputeKind.of(compute).text();
            case Op.Overlapped _ -> "overlapped";
            case Op.Transfer _ -> "transfer";
            case Op.ActivationOp _ -> "offload";
            case Op.ParameterOp _ -> "gather";
            case Op.ReduceGradients _ -> "reduce";
        };
    }
}
