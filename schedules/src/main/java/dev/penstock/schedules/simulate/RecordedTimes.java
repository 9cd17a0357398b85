package dev.penstock.schedules.simulate;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.Schedule;
import java.util.Arrays;

/** Keeps all times. */
final class RecordedTimes implements OpTimes {
    private final Schedule schedule;
    private final long[][] starts;
    private final long[][] ends;
    private final int[] opsRun;

    RecordedTimes(Schedule schedule) {
        this.schedule = schedule;
        int ranks = schedule.shape().ranks();
        this.starts = new long[ranks][];
        this.ends = new long[ranks][];
        this.opsRun = new int[ranks];
        for (int rank = 0; rank < ranks; rank++) {
            starts[rank] = new long[schedule.program(rank).ops().size()];
            ends[rank] = new long[starts[rank].length];
        }
    }

    @Override
    public void ran(int rank, int position, Op op, long start, long end, long free) {
        starts[rank][position] = start;
        ends[rank][position] = end;
        opsRun[rank] = position + 1;
    }

    /** The timeline; nothing is recorded after it. */
    Timeline timeline() {
        for (int rank = 0; rank < opsRun.length; rank++) {
            starts[rank] = trimmed(starts[rank], opsRun[rank]);
            ends[rank] = trimmed(ends[rank], opsRun[rank]);
        }
        return new Timeline(schedule, starts, ends);
    }

    private static long[] trimmed(long[] times, int length) {
        return times.length == length ? times : Arrays.copyOf(times, length);
    }
}
