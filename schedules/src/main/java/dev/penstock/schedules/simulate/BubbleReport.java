package dev.penstock.schedules.simulate;

import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import java.util.ArrayList;
import java.util.List;

/**
 * Where the time of a step went. Busy is time in computations; all else is the bubble.
 *
 * @param makespanNanos from the first start to the last end of all ranks
 * @param ranks entry r is rank r; one that is absent has no time
 */
public record BubbleReport(long makespanNanos, List<RankTime> ranks) {
    public BubbleReport {
        ranks = List.copyOf(ranks);
    }

    /**
     * The time of one rank. Its span goes from the start of its first to the end of its last
     * computation.
     *
     * @param busyNanos time in computations
     * @param idleInSpanNanos time without computation inside the span
     * @param flushIdleNanos time outside the span, which the barrier at the end of the step costs
     */
    public record RankTime(int rank, long busyNanos, long idleInSpanNanos, long flushIdleNanos) {
        /** All time without computation. */
        public long idleNanos() {
            return idleInSpanNanos + flushIdleNanos;
        }
    }

    static BubbleReport of(Timeline timeline) {
        long makespan = timeline.makespanNanos();
        var ranks = new ArrayList<RankTime>();
        for (RankProgram program : timeline.schedule().programs()) {
            ranks.add(
                    isPresent(timeline.schedule(), program.rank())
                            ? rankTime(timeline, program, makespan)
                            : new RankTime(program.rank(), 0, 0, 0));
        }
        return new BubbleReport(makespan, ranks);
    }

    private static boolean isPresent(Schedule schedule, int rank) {
        return schedule.placement().wiring().map(wired -> wired.isPresent(rank)).orElse(true);
    }

    private static RankTime rankTime(Timeline timeline, RankProgram program, long makespan) {
        int rank = program.rank();
        long busy = 0;
        long first = Long.MAX_VALUE;
        long last = Long.MIN_VALUE;
        for (int i = 0; i < timeline.opsRun(rank); i++) {
            if (!program.ops().get(i).computations().isEmpty()) {
                busy += timeline.durationNanos(rank, i);
                first = Math.min(first, timeline.startNanos(rank, i));
                last = Math.max(last, timeline.endNanos(rank, i));
            }
        }
        long span = first > last ? 0 : last - first;
        return new RankTime(rank, busy, span - busy, makespan - span);
    }

    /** Idle time of all ranks that are there over their time: 0 is perfect. */
    public double bubbleShare() {
        long idle = ranks.stream().mapToLong(RankTime::idleNanos).sum();
        long there = ranks.stream().filter(rank -> rank.busyNanos + rank.idleNanos() > 0).count();
        double all = (double) makespanNanos * there;
        return all == 0 ? 0 : idle / all;
    }
}
