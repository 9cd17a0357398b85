package dev.penstock.schedules.simulate;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.RankProgram;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * The mean times of computations in measured steps. Add the steps one after another; what a tensor
 * takes between ranks cannot be told from times of ops, since a receive may contain its wait.
 */
public final class MeasuredMeans {
    private record Work(int stage, int slice, ComputeKind kind) {}

    /** Nanoseconds of all, and how many there were. */
    private final Map<Work, long[]> sums =
            new TreeMap<>(
                    Comparator.comparingInt(Work::stage)
                            .thenComparingInt(Work::slice)
                            .thenComparing(Work::kind));

    /** Stages, slices and kinds of the pairs, with the time of each. */
    private final List<Pair> pairs = new ArrayList<>();

    private record Pair(Work forward, Work backward, long nanos) {}

    /** Adds what was measured in a step. */
    public void add(Timeline step) {
        for (RankProgram program : step.schedule().programs()) {
            int rank = program.rank();
            for (int i = 0; i < step.opsRun(rank); i++) {
                long nanos = step.durationNanos(rank, i);
                switch (program.ops().get(i)) {
                    case Op.Compute op -> {
                        long[] sum = sums.computeIfAbsent(work(op), _ -> new long[2]);
                        sum[0] += nanos;
                        sum[1]++;
                    }
                    case Op.Overlapped(Op.Forward forward, Op.InputGradient backward) ->
                            pairs.add(new Pair(work(forward), work(backward), nanos));
                    case Op.Transfer _, Op.ParameterOp _, Op.ReduceGradients _ -> {}
                }
            }
        }
    }

    private static Work work(Op.Compute op) {
        return new Work(op.stage(), op.unit().slice(), ComputeKind.of(op));
    }

    /**
     * The lines of a profile, by stage, slice and kind. The overlap factor compares pairs with
     * their parts, where these were measured alone too; without such pairs there is none.
     */
    public List<ProfileLine> lines() {
        var lines = new ArrayList<ProfileLine>();
        sums.forEach(
                (work, _) ->
                        lines.add(
                                new ProfileLine.Computation(
                                        work.kind,
                                        work.stage,
                                        work.slice,
                                        Math.round(mean(work)))));
        double together = 0;
        double alone = 0;
        for (Pair pair : pairs) {
            if (sums.containsKey(pair.forward) && sums.containsKey(pair.backward)) {
                together += pair.nanos;
                alone += mean(pair.forward) + mean(pair.backward);
            }
        }
        if (alone > 0) {
            lines.add(new ProfileLine.OverlapFactor(together / alone));
        }
        return lines;
    }

    private double mean(Work work) {
        long[] sum = sums.getOrDefault(work, new long[] {0, 1});
        return (double) sum[0] / sum[1];
    }
}
