package dev.penstock.runtime.metrics;

import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RankStep;
import dev.penstock.actors.spi.RecoveryReport;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.Schedule;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Finds ranks that compute slower than they should. A rank's time for its forwards and backwards is
 * divided by its share of the model's work, because stages differ, and by the same figure of the
 * median rank, because a busy machine slows all of them. The result is 1 for a rank that keeps up.
 * It is compared with the rank's own past, once there is some, so that differences that the shares
 * do not include (a stage whose ops are less efficient) are not held against it.
 *
 * <p>Medians over {@value #WINDOW} steps decide, so a rank that becomes slow is found within as
 * many steps, and one slow step is ignored. A rank that loses less than 5 ms of a step is not
 * reported, and none more than five times. A process that replaces another one compiles in its
 * first steps, so after such a recovery as many steps are ignored. Not thread-safe: confined to the
 * listener's thread.
 */
public final class StragglerWatch implements RunListener {
    private static final int WINDOW = 10;
    private static final int LONGEST_PAST = 200;

    /** The factor from which a rank is a straggler. */
    private static final double SLOW = 1.5;

    /** Of a step, below which nobody could gain anything: ops of tiny models vary more. */
    private static final double LEAST_LOST_NANOS = 5e6;

    /** Per rank and run: more would say nothing new. */
    private static final int MOST_NOTES = 5;

    /** The factor below which it has recovered. */
    private static final double WELL = 1.25;

    private Schedule schedule;
    private final RankGrid grid;
    private double[] shares;
    private final RunListener told;
    private final List<Rank> ranks;
    private int ignored;

    private static final class Rank {
        private final ArrayDeque<Double> window = new ArrayDeque<>();
        private final ArrayDeque<Double> past = new ArrayDeque<>();
        private final ArrayDeque<Double> nanos = new ArrayDeque<>();
        private boolean slow;
        private int notes;
    }

    /**
     * @param schedule the lowered training program
     * @param grid of all ranks
     * @param shares of the model's work, entry r is rank r's; any unit
     * @param told notified of stragglers
     */
    public StragglerWatch(Schedule schedule, RankGrid grid, double[] shares, RunListener told) {
        this.schedule = schedule;
        this.grid = grid;
        this.shares = shares.clone();
        this.told = told;
        this.ranks = Arrays.stream(shares).mapToObj(_ -> new Rank()).toList();
    }

    /** From the next step on, the ranks run this program and share the work like this. */
    public void follow(Schedule other, double[] otherShares) {
        schedule = other;
        shares = otherShares.clone();
        ignoreSome();
    }

    @Override
    public void onRecovery(RecoveryReport report) {
        if (!report.replaced().isEmpty()) {
            ignoreSome();
        }
    }

    private void ignoreSome() {
        ignored = WINDOW;
        for (Rank rank : ranks) {
            rank.window.clear();
            rank.nanos.clear();
        }
    }

    @Override
    public void onStep(StepReport report) {
        if (ignored > 0) {
            ignored--;
            return;
        }
        Map<Integer, Double> pace = new TreeMap<>();
        for (RankStep rank : report.ranks()) {
            if (shares[rank.rank()] > 0) { // of replicas that share micro-batches, some may idle
                double nanos = computeNanos(rank);
                pace.put(rank.rank(), nanos / shares[rank.rank()]);
                keep(ranks.get(rank.rank()).nanos, nanos, WINDOW);
            }
        }
        double middle = pace.isEmpty() ? 0 : median(pace.values()); // of two, the faster one
        if (middle > 0) {
            pace.forEach((rank, own) -> look(rank, own / middle, report.step()));
        }
    }

    private void look(int index, double pace, long step) {
        Rank rank = ranks.get(index);
        rank.window.addLast(pace);
        if (rank.window.size() > WINDOW) {
            double left = rank.window.removeFirst();
            if (!rank.slow) {
                remember(rank, left);
            }
        }
        if (rank.window.size() < WINDOW) {
            return;
        }
        double usual = rank.past.size() < WINDOW ? 1 : median(rank.past);
        double factor = median(rank.window) / usual;
        double lost = median(rank.nanos) * (1 - 1 / factor);
        if (!rank.slow && factor > SLOW && lost > LEAST_LOST_NANOS) {
            rank.slow = true;
            if (++rank.notes <= MOST_NOTES) {
                told.onStraggler(index, step, factor);
            }
        } else if (factor < WELL) {
            rank.slow = false;
        }
    }

    private static void remember(Rank rank, double pace) {
        keep(rank.past, pace, LONGEST_PAST);
    }

    private static void keep(ArrayDeque<Double> values, double value, int most) {
        values.addLast(value);
        if (values.size() > most) {
            values.removeFirst();
        }
    }

    private double computeNanos(RankStep rank) {
        List<Op> ops = schedule.program(grid.placeOf(rank.rank()).pipeline()).ops();
        double nanos = 0;
        for (int i = 0; i < ops.size(); i++) {
            if (!ops.get(i).computations().isEmpty()) {
                nanos += rank.opEndNanos()[i] - rank.opStartNanos()[i];
            }
        }
        return nanos;
    }

    private static double median(Collection<Double> values) {
        double[] sorted = values.stream().mapToDouble(Double::doubleValue).sorted().toArray();
        return sorted[(sorted.length - 1) / 2];
    }
}
