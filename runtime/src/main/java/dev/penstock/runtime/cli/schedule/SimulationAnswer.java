package dev.penstock.runtime.cli.schedule;

import dev.penstock.actors.spi.StepTraffic;
import dev.penstock.runtime.cli.plan.PlanAnswer;
import dev.penstock.runtime.config.run.RunConfig;
import dev.penstock.runtime.lengths.UnequalSteps;
import dev.penstock.runtime.planning.SentBytes;
import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.BubbleReport;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.CriticalPath;
import dev.penstock.schedules.simulate.CriticalPathSummary;
import dev.penstock.schedules.simulate.InFlight;
import dev.penstock.schedules.simulate.MemoryProfile;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import dev.penstock.schedules.simulate.Timeline;
import dev.penstock.schedules.simulate.Traffic;
import dev.penstock.schedules.simulate.apart.ExchangingSteps;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * What {@code schedule simulate} says, in the units of the costs; of a profile or a cluster:
 * nanoseconds.
 *
 * @param step the makespan and what follows on the last op, the commit and the update, by the
 *     profile: what a run measures as its step; null without a profile that holds it
 * @param makespanWithoutStragglers null where no rank is slow
 * @param criticalPath what makes the step as long as it is
 * @param links what travels between ranks
 * @param sentBytes by rank of the configuration's run, all its shards and replicas: what it sends
 *     to others in a training step, by use; empty without a configuration, or with another model or
 *     other ops than its own
 * @param exchanging the steps of replicas that take them alone, on known hardware; null for others
 * @param unequal of the first steps of a run with unequal micro-batches; null where they are equal
 */
record SimulationAnswer(
        String name,
        long makespan,
        @Nullable Long step,
        @Nullable Long makespanWithoutStragglers,
        double bubble,
        List<RankAnswer> ranks,
        CriticalPathSummary criticalPath,
        List<LinkAnswer> links,
        List<Map<String, Long>> sentBytes,
        @Nullable ExchangingSteps exchanging,
        UnequalSteps.@Nullable Times unequal) {

    /**
     * @param idle all time without computation
     * @param idleInSpan the part of it between the rank's first and last computation
     * @param peakActivations most live (stage, micro-batch, slice) units
     * @param gathers of parameters in a step
     * @param reductions of gradients in a step
     */
    record RankAnswer(
            int rank,
            long busy,
            long idle,
            long idleInSpan,
            int peakActivations,
            Volume sent,
            Volume received,
            int gathers,
            int reductions) {}

    /** What goes from one rank to another. */
    record LinkAnswer(int fromRank, int toRank, Volume volume) {}

    /**
     * @param bytes null where the model is not known
     */
    record Volume(long tensors, @Nullable Long bytes) {
        static Volume of(Traffic.Volume volume, boolean sized) {
            return new Volume(volume.tensors(), sized ? volume.bytes() : null);
        }

        @Override
        public String toString() {
            return bytes == null
                    ? Long.toString(tensors)
                    : tensors + " (" + PlanAnswer.size(bytes) + ")";
        }
    }

    static SimulationAnswer of(
            Schedule schedule,
            Optional<RunConfig> run,
            CostArguments costs,
            List<StepTraffic> traffic) {
        CostModel costModel = costs.model(schedule, run);
        Timeline timeline = ScheduleSimulator.simulate(schedule, costModel);
        BubbleReport bubble = timeline.bubble();
        Optional<Traffic.TensorBytes> sizes = costs.tensorBytes(schedule, run);
        Traffic tensors = Traffic.of(schedule, sizes.orElse((_, _) -> 0));
        MemoryProfile memory = MemoryProfile.of(schedule, PassKind.TRAINING);
        CriticalPath path = CriticalPath.of(schedule, costModel, InFlight.unbounded());
        return new SimulationAnswer(
                schedule.name(),
                bubble.makespanNanos(),
                costs.updateNanos().map(update -> bubble.makespanNanos() + update).orElse(null),
                costs.hasStragglers()
                        ? ScheduleSimulator.simulate(schedule, costs.usual(schedule, run))
                                .makespanNanos()
                        : null,
                bubble.bubbleShare(),
                bubble.ranks().stream()
                        .map(
                                time ->
                                        rank(
                                                time,
                                                memory.ranks().get(time.rank()).peakUnits(),
                                                tensors.ranks().get(time.rank()),
                                                sizes.isPresent()))
                        .toList(),
                CriticalPathSummary.of(path, schedule),
                tensors.links().stream()
                        .map(
                                link ->
                                        new LinkAnswer(
                                                link.fromRank(),
                                                link.toRank(),
                                                Volume.of(link.volume(), sizes.isPresent())))
                        .toList(),
                SentBytes.byUse(traffic),
                costs.exchanges(timeline, run).orElse(null),
                null);
    }

    SimulationAnswer with(UnequalSteps.@Nullable Times times) {
        return new SimulationAnswer(
                name,
                makespan,
                step,
                makespanWithoutStragglers,
                bubble,
                ranks,
                criticalPath,
                links,
                sentBytes,
                exchanging,
                times);
    }

    private static RankAnswer rank(
            BubbleReport.RankTime time, int peakUnits, Traffic.OfRank traffic, boolean sized) {
        return new RankAnswer(
                time.rank(),
                time.busyNanos(),
                time.idleNanos(),
                time.idleInSpanNanos(),
                peakUnits,
                Volume.of(traffic.sent(), sized),
                Volume.of(traffic.received(), sized),
                traffic.gathers(),
                traffic.reductions());
    }
}
