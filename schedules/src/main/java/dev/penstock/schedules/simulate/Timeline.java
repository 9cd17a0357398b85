package dev.penstock.schedules.simulate;

import dev.penstock.schedules.ir.Schedule;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * When every op of a schedule started and ended: simulated, or measured in a run. Times of a
 * simulation count from 0; measured ones are on the clock that they were taken from.
 *
 * <p>In a simulation an op starts when it no longer waits. A measured receive may contain its wait.
 * If a simulation got stuck, the timeline holds a prefix of each program.
 */
public final class Timeline {
    private final Schedule schedule;
    private final long[][] starts;
    private final long[][] ends;
    private final long firstStart;
    private final long lastEnd;

    /** Null where nobody measured what collectives took. */
    private final @Nullable KeptTimes kept;

    /** Keeps the arrays: the caller gives them away. */
    Timeline(Schedule schedule, long[][] starts, long[][] ends) {
        this(schedule, starts, ends, null);
    }

    private Timeline(Schedule schedule, long[][] starts, long[][] ends, @Nullable KeptTimes kept) {
        this.kept = kept;
        this.schedule = schedule;
        this.starts = starts;
        this.ends = ends;
        long first = Long.MAX_VALUE;
        long last = Long.MIN_VALUE;
        for (int rank = 0; rank < starts.length; rank++) {
            for (int i = 0; i < starts[rank].length; i++) {
                first = Math.min(first, starts[rank][i]);
                last = Math.max(last, ends[rank][i]);
            }
        }
        this.firstStart = first > last ? 0 : first;
        this.lastEnd = first > last ? 0 : last;
    }

    /**
     * A measured step.
     *
     * @param startNanos entry [r][i] is the start of op i of rank r
     * @param endNanos entry [r][i] is its end
     * @throws IllegalArgumentException if the arrays do not fit the programs
     */
    public static Timeline measured(Schedule schedule, long[][] startNanos, long[][] endNanos) {
        int ranks = schedule.shape().ranks();
        if (startNanos.length != ranks || endNanos.length != ranks) {
            throw new IllegalArgumentException(
                    "expected the times of %d ranks, got starts of %d and ends of %d"
                            .formatted(ranks, startNanos.length, endNanos.length));
        }
        for (int rank = 0; rank < ranks; rank++) {
            int ops = schedule.program(rank).ops().size();
            if (startNanos[rank].length != ops || endNanos[rank].length != ops) {
                throw new IllegalArgumentException(
                        "expected the times of %d ops of rank %d, got %d starts and %d ends"
                                .formatted(
                                        ops, rank, startNanos[rank].length, endNanos[rank].length));
            }
        }
        return new Timeline(schedule, copy(startNanos), copy(endNanos));
    }

    /**
     * A measured step that tells what collectives took.
     *
     * @param collectiveNanos entry [r][i] is, of op i of rank r: of a computation the part that
     *     went to gathers of parameters; of a gather or a sum what its rank did and waited for it
     *     outside of computations
     */
    public static Timeline measured(
            Schedule schedule, long[][] startNanos, long[][] endNanos, long[][] collectiveNanos) {
        return measured(
                schedule, startNanos, endNanos, collectiveNanos, new long[startNanos.length][0]);
    }

    /**
     * A measured step that tells what collectives and copies took.
     *
     * @param collectiveNanos as above
     * @param copyNanos entry [r][i] is, of op i of rank r: of an offload, a reload, a gather that
     *     loads or a sum that leaves, how long its copy took beside the computations; of a
     *     computation what it waited for activations; a row without entries is one of zeros
     */
    public static Timeline measured(
            Schedule schedule,
            long[][] startNanos,
            long[][] endNanos,
            long[][] collectiveNanos,
            long[][] copyNanos) {
        Timeline plain = measured(schedule, startNanos, endNanos);
        return new Timeline(
                schedule,
                plain.starts,
                plain.ends,
                KeptTimes.of(plain, collectiveNanos, copyNanos));
    }

    /** The same as if nobody had measured what collectives took. */
    public Timeline withoutCollectives() {
        return new Timeline(schedule, starts, ends);
    }

    private static long[][] copy(long[][] times) {
        return Arrays.stream(times).map(long[]::clone).toArray(long[][]::new);
    }

    public Schedule schedule() {
        return schedule;
    }

    /** How many ops of a rank are in this timeline, from its first on. */
    public int opsRun(int rank) {
        return starts[rank].length;
    }

    public long startNanos(int rank, int position) {
        return starts[rank][position];
    }

    public long endNanos(int rank, int position) {
        return ends[rank][position];
    }

    public long durationNanos(int rank, int position) {
        return ends[rank][position] - starts[rank][position];
    }

    /** Whether it is known what gathers and sums took. */
    public boolean tellsCollectives() {
        return kept != null;
    }

    /**
     * How long an op keeps its rank: a computation without gathers that have ops of their own, a
     * gather or a sum with all that its rank did and waited for it, wherever. Waits for activations
     * on their way belong to nobody. Where that is not known, its duration.
     */
    public long keptNanos(int rank, int position) {
        return kept == null ? durationNanos(rank, position) : kept.nanos()[rank][position];
    }

    /**
     * How long the copy of an offload, a reload, a gather that loads or a sum that leaves took
     * beside the computations; 0 of other ops, and where that is not known.
     */
    public long copyNanos(int rank, int position) {
        return kept == null || !schedule.program(rank).ops().get(position).computations().isEmpty()
                ? 0
                : kept.copies()[rank][position];
    }

    /** The part of a computation's {@link #keptNanos} that went to gathers without ops. */
    public long gatheringNanos(int rank, int position) {
        return kept == null ? 0 : kept.gathering()[rank][position];
    }

    /** When the first op of all started. */
    public long startNanos() {
        return firstStart;
    }

    /** From the first start to the last end. */
    public long makespanNanos() {
        return Math.max(0, lastEnd - firstStart);
    }

    /** Where the time of the ranks went. */
    public BubbleReport bubble() {
        return BubbleReport.of(this);
    }
}
