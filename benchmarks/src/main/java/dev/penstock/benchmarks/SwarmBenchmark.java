package dev.penstock.benchmarks;

import dev.penstock.schedules.simulate.churn.Churn;
import dev.penstock.schedules.simulate.churn.ChurnReplay;
import dev.penstock.schedules.simulate.churn.ChurnTrace;
import dev.penstock.schedules.simulate.churn.RebalancingRule;
import dev.penstock.schedules.simulate.churn.RebalancingRule.Joining;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.LongStream;

/**
 * What moving peers between stages is worth where peers are preempted: a replay in the manner of
 * SWARM (arXiv 2301.11913), 32 stages for 32 hours, over ten seeds. The paper's own trace of
 * preemptions is not public; here peers come and go at random, and the table says how long they
 * live on average. At any time a pipeline is as fast as its stage with the fewest peers.
 *
 * <p>Arguments: the number of peers at the start, 400 unless given.
 */
public final class SwarmBenchmark {
    private static final int STAGES = 32;
    private static final double HOUR = 3600;
    private static final double HOURS = 32;
    private static final int SEEDS = 10;
    private static final List<Integer> LIVES = List.of(8, 24, 48);

    private SwarmBenchmark() {}

    public static void main(String[] arguments) {
        int peers = arguments.length == 0 ? 400 : Integer.parseInt(arguments[0]);
        PrintStream out = System.out;
        out.printf(
                "%d stages, %d peers at the start, %.0f hours, %d seeds%n",
                STAGES, peers, HOURS, SEEDS);
        out.printf(
                "%-9s %-8s %-12s %9s %9s %9s%n",
                "life", "joiner", "moves", "optimum", "whole", "moved");
        for (int life : LIVES) {
            List<ChurnTrace> traces =
                    LongStream.range(0, SEEDS)
                            .mapToObj(
                                    seed ->
                                            ChurnTrace.of(
                                                    new Churn(
                                                            STAGES,
                                                            peers,
                                                            life * HOUR,
                                                            HOURS * HOUR),
                                                    seed))
                            .toList();
            for (Joining joining : Joining.values()) {
                row(out, life, traces, RebalancingRule.never(joining), "never");
                row(out, life, traces, RebalancingRule.every(joining, 300), "every 300 s");
                row(out, life, traces, RebalancingRule.every(joining, 60), "every 60 s");
            }
        }
        out.println(
                "optimum: share of (all peers / stages), whole: of its whole part; means, and the least and the most of the seeds");
        out.println(
                "joiner drawn: to a stage drawn for it; least: to the stage with the fewest peers");
        out.println("the paper, of its optimum, on its trace: never 82.7 %, every 300 s 95.8 %");
    }

    private static void row(
            PrintStream out,
            int life,
            List<ChurnTrace> traces,
            RebalancingRule rule,
            String moves) {
        var outcomes = new ArrayList<ChurnReplay.Outcome>();
        traces.forEach(trace -> outcomes.add(ChurnReplay.of(trace, rule)));
        var optimum =
                outcomes.stream()
                        .mapToDouble(ChurnReplay.Outcome::shareOfOptimum)
                        .summaryStatistics();
        double whole =
                outcomes.stream()
                        .mapToDouble(ChurnReplay.Outcome::shareOfWhole)
                        .average()
                        .orElse(0);
        double moved = outcomes.stream().mapToInt(ChurnReplay.Outcome::moves).average().orElse(0);
        out.printf(
                Locale.ROOT,
                "%-9s %-8s %-12s %7.1f %% %7.1f %% %9.0f   (%.1f to %.1f %%)%n",
                life + " hours",
                rule.joining().name().toLowerCase(Locale.ROOT),
                moves,
                100 * optimum.getAverage(),
                100 * whole,
                moved,
                100 * optimum.getMin(),
                100 * optimum.getMax());
    }
}
