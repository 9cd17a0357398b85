package dev.penstock.runtime.cli.plan;

import dev.penstock.actors.spi.StepTraffic;
import dev.penstock.runtime.planning.FittingWays.Way;
import dev.penstock.runtime.planning.SentBytes;
import dev.penstock.schedules.plan.Plan;
import dev.penstock.schedules.plan.PlanReport;
import dev.penstock.schedules.plan.work.PlanChoice;
import dev.penstock.schedules.plan.work.PlanRequest;
import dev.penstock.schedules.plan.work.RankMemory;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * The answer for programs.
 *
 * @param complete whether no choice is left that could be among the plans
 * @param ways in which the model fits that plans do not know, the fastest first; empty if it fits
 *     as it is
 * @param config of the first plan; of the first way if there is no plan
 * @param sentBytes by rank, what it will send to others in a training step of the first plan, by
 *     use; empty where no run could be cut like this
 */
public record PlanAnswer(
        String cluster,
        int devices,
        long parameters,
        int batch,
        int sequence,
        long bounded,
        long proved,
        boolean complete,
        List<PlanEntry> plans,
        List<Way> ways,
        List<String> explanation,
        String config,
        List<Map<String, Long>> sentBytes) {

    /**
     * A plan.
     *
     * @param tensor the most tensor shards of a rank
     * @param shards entry r is those of rank r
     * @param memory entry r is that of a device of rank r
     */
    record PlanEntry(
            String kind,
            int pipeline,
            int tensor,
            List<Integer> shards,
            int data,
            int zeroStage,
            int chunks,
            int microBatches,
            List<Integer> sliceLengths,
            boolean recompute,
            List<Integer> partition,
            long stepNanos,
            long busyNanos,
            long tailNanos,
            double bubble,
            double tokensPerSecond,
            List<RankMemory> memory) {
        static PlanEntry of(PlanRequest request, Plan plan) {
            PlanChoice choice = plan.choice();
            return new PlanEntry(
                    choice.kind(),
                    choice.layout().pipeline(),
                    choice.layout().tensor(),
                    choice.layout().shards(),
                    choice.layout().data(),
                    choice.zero().number(),
                    choice.chunks(),
                    choice.microBatches(),
                    choice.sliceLengths(),
                    choice.recompute(),
                    plan.partition(),
                    plan.stepNanos(),
                    plan.busyNanos(),
                    plan.tailNanos(),
                    plan.bubbleShare(),
                    plan.tokensPerSecond(request),
                    plan.memory());
        }
    }

    static PlanAnswer of(
            PlanReport report,
            List<Way> ways,
            List<String> explanation,
            List<StepTraffic> traffic) {
        PlanRequest request = report.request();
        return new PlanAnswer(
                request.cluster().name(),
                request.cluster().devices(),
                request.model().parameters(),
                request.batch(),
                request.model().sequence(),
                report.bounded(),
                report.proved(),
                report.leastOpenNanos().isEmpty(),
                report.plans().stream().map(plan -> PlanEntry.of(request, plan)).toList(),
                ways,
                explanation,
                report.plans().isEmpty()
                        ? PlanSnippet.of(ways.getFirst())
                        : PlanSnippet.of(request, report.plans().getFirst()),
                SentBytes.byUse(traffic));
    }

    public static String size(long bytes) {
        return String.format(Locale.ROOT, "%.2f GiB", bytes / (double) (1L << 30));
    }
}
