package dev.penstock.runtime.adapt;

import dev.penstock.runtime.model.shape.StagePartition;
import dev.penstock.runtime.model.shape.TrainedParts;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.InFlight;
import dev.penstock.schedules.simulate.ProfileCosts;
import dev.penstock.schedules.simulate.ProfileLine;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/**
 * What steps of a plan would take with its layers in other stages. The work of a stage is that of
 * its layers by FLOPs; a rank's speed is the work of its stages over the time that it took for
 * them.
 *
 * @param schedule the order that the ranks run
 * @param partition of its stages
 * @param parts of the model, as far as they are trained
 * @param lastStep of the run
 */
public record SpeedModel(
        Schedule schedule,
        InFlight inFlight,
        StagePartition partition,
        TrainedParts parts,
        long lastStep) {

    /**
     * The stages that suit the measured speeds best.
     *
     * @param nanosNow simulated computations of a step as it is
     * @param nanosThen the same with these stages
     */
    record Proposal(
            StagePartition former,
            StagePartition partition,
            long nanosNow,
            long nanosThen,
            double slowest) {
        /** What changes and why, in a line. */
        String words() {
            return "layers %s instead of %s would take %.3f s for the computations of a step instead of %.3f s; the slowest rank computes %.2f times as fast as the fastest"
                    .formatted(
                            partition.layersPerStage(),
                            former.layersPerStage(),
                            nanosThen / 1e9,
                            nanosNow / 1e9,
                            slowest);
        }
    }

    /**
     * Looks for better stages.
     *
     * @param lines what computations of the present stages took
     */
    Proposal propose(List<ProfileLine> lines) {
        double[] work = partition.flopsPerToken(parts);
        double[] speeds = speeds(lines, work);
        StagePartition best = StagePartition.bySpeed(parts, speeds);
        double[] then = best.flopsPerToken(parts);
        var stats = IntStream.range(0, speeds.length).mapToDouble(s -> speeds[s]).summaryStatistics();
        return new Proposal(
                partition,
                best,
                simulated(lines),
                simulated(moved(lines, work, then)),
                stats.getMin() / stats.getMax());
    }

    /** Of every stage, that of its rank. */
    private double[] speeds(List<ProfileLine> lines, double[] work) {
        double[] nanos = new double[work.length];
        for (ProfileLine line : lines) {
            if (line instanceof ProfileLine.Computation(_, int stage, _, long took)) {
                nanos[stage] += took;
            }
        }
        double[] speeds = new double[work.length];
        for (int stage = 0; stage < work.length; stage++) {
            int rank = schedule.placement().rankOf(stage);
            double done = 0;
            double took = 0;
            for (int each : schedule.placement().stagesOf(rank)) {
                done += work[each];
                took += nanos[each];
            }
            speeds[stage] = done / Math.max(1, took);
        }
        return speeds;
    }

    /** A stage with more work takes longer by as much: layers are alike. */
    private static List<ProfileLine> moved(List<ProfileLine> lines, double[] work, double[] then) {
        List<ProfileLine> moved = new ArrayList<>();
        for (ProfileLine line : lines) {
            moved.add(
                    line instanceof ProfileLine.Computation(var kind, int stage, int slice, long took)
                            ? new ProfileLine.Computation(
                                    kind,
                                    stage,
                                    slice,
                                    Math.round(took * then[stage] / Math.max(1, work[stage])))
                            : line);
        }
        return moved;
    }

    private long simulated(List<ProfileLine> lines) {
        return ScheduleSimulator.simulate(schedule, new ProfileCosts(lines), inFlight)
                .makespanNanos();
    }
}
