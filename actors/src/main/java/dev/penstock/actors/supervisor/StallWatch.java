package dev.penstock.actors.supervisor;

import dev.penstock.actors.rank.RankActivity;
import dev.penstock.actors.spi.RankStep;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.OpGrid;
import dev.penstock.schedules.ir.OpPlace;
import dev.penstock.schedules.ir.OpText;
import dev.penstock.schedules.ir.Schedule;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;

/**
 * Sees when nothing moves any more and says who waits for what, from whom, since when. A rank
 * inside an op counts as moving for three times the longest op seen so far: a long op is no stall.
 * One that saves does for as long as others may stand still before they are asked anew.
 */
final class StallWatch {
    /** Before any op was measured: code is not compiled yet and caches are cold. */
    private static final long UNKNOWN_OP_NANOS = 60_000_000_000L;

    private static final int PATIENCE = 3;
    private static final int CONTEXT_OPS = 3;

    /** What people can read, and what fits a message to those who follow the run. */
    private static final int MOST_TOLD = 32;

    private RunPlan plan;
    private long longestOpNanos;
    private long nextReportNanos;

    StallWatch(RunPlan plan) {
        this.plan = plan;
    }

    /** From now on the ranks follow another plan of the run. */
    void follow(RunPlan revised) {
        plan = revised;
        longestOpNanos = 0;
    }

    /** Learns how long ops take. */
    void learn(StepReport report) {
        for (RankStep rank : report.ranks()) {
            longestOpNanos =
                    Math.max(longestOpNanos, rank.updateEndNanos() - rank.updateStartNanos());
        }
        for (RankStep rank : report.ranks()) {
            List<Op> ops = plan.program(StepKind.TRAIN, rank.rank()).ops();
            for (int i = 0; i < ops.size(); i++) {
                if (!ops.get(i).computations().isEmpty()) {
                    long nanos = rank.opEndNanos()[i] - rank.opStartNanos()[i];
                    longestOpNanos = Math.max(longestOpNanos, nanos);
                }
            }
        }
    }

    /** A report, if nothing has moved for long enough; again each time that span has passed. */
    Optional<String> report(List<RankTable.Row> rows, OptionalLong roundSince, long now) {
        OptionalLong still = stillNanos(rows, roundSince, now);
        long limit = plan.timeouts().stallReport().toNanos();
        if (still.isEmpty() || still.getAsLong() < limit) {
            nextReportNanos = now;
            return Optional.empty();
        }
        if (now < nextReportNanos) {
            return Optional.empty();
        }
        nextReportNanos = now + limit;
        return Optional.of(text(rows, still.getAsLong(), now));
    }

    /** The reason to give up, if all have waited, and none worked, for the stall limit. */
    Optional<String> hopeless(List<RankTable.Row> rows, OptionalLong roundSince, long now) {
        if (rows.stream().anyMatch(RankTable.Row::works)) {
            return Optional.empty(); // a long op of a rank that lives is told, and waited for
        }
        OptionalLong still = stillNanos(rows, roundSince, now);
        Duration limit = plan.timeouts().stallLimit();
        if (still.isEmpty() || still.getAsLong() < limit.toNanos()) {
            return Optional.empty();
        }
        return Optional.of(
                "%s%nall are asked anew after timeouts.stall = %d s"
                        .formatted(text(rows, still.getAsLong(), now), limit.toSeconds()));
    }

    /**
     * How long nothing has moved; empty while something may. What ranks did before the round does
     * not count: they may have stood still for a minute because the run was parked, and have told
     * of nothing newer yet.
     *
     * @param roundSince since when the supervisor waits for the ranks; if it does not, idle ranks
     *     are no stall
     */
    private OptionalLong stillNanos(List<RankTable.Row> rows, OptionalLong roundSince, long now) {
        if (roundSince.isEmpty()) {
            return OptionalLong.empty();
        }
        long youngest = Long.MAX_VALUE;
        long opLimit = longestOpNanos == 0 ? UNKNOWN_OP_NANOS : PATIENCE * longestOpNanos;
        for (RankTable.Row row : rows) {
            RankActivity activity = row.activity();
            if (activity == null) {
                return OptionalLong.empty();
            }
            switch (activity.state()) {
                case SAVING -> { // a disk may be slow, and its errors are its own
                    if (row.sinceNanos(activity, now) < plan.timeouts().stallLimit().toNanos()) {
                        return OptionalLong.empty();
                    }
                }
                case COMPUTING, UPDATING -> {
                    if (row.sinceNanos(activity, now) < opLimit) {
                        return OptionalLong.empty();
                    }
                }
                case IDLE,
                        WAITING_FOR_FRAME,
                        WAITING_FOR_CREDIT,
                        WAITING_FOR_LINK,
                        WAITING_FOR_MEMBERS -> {}
            }
            youngest = Math.min(youngest, row.sinceNanos(activity, now));
        }
        return OptionalLong.of(Math.min(youngest, now - roundSince.getAsLong()));
    }

    private String text(List<RankTable.Row> rows, long stillNanos, long now) {
        List<RankTable.Row> told = longestStanding(rows, now);
        var text =
                new StringBuilder(
                        "stall: nothing has moved for %.1f s".formatted(stillNanos / 1e9));
        if (told.size() < rows.size()) {
            text.append(
                    "; these %d of %d ranks have stood still longest"
                            .formatted(told.size(), rows.size()));
        }
        for (RankTable.Row row : told) {
            RankActivity activity = row.activity();
            if (activity != null) {
                text.append(
                        "%n  rank %d: %s, for %.1f s now; order: %s"
                                .formatted(
                                        row.rank(),
                                        activity.text(),
                                        row.sinceNanos(activity, now) / 1e9,
                                        excerpt(row.rank(), activity)));
            }
        }
        return text.append(System.lineSeparator()).append(grid(told)).toString().stripTrailing();
    }

    private static List<RankTable.Row> longestStanding(List<RankTable.Row> rows, long now) {
        return rows.stream()
                .sorted(Comparator.comparingLong(row -> -stillNanos(row, now)))
                .limit(MOST_TOLD)
                .sorted(Comparator.comparingInt(RankTable.Row::rank))
                .toList();
    }

    private static long stillNanos(RankTable.Row row, long now) {
        RankActivity activity = row.activity();
        return activity == null ? 0 : row.sinceNanos(activity, now);
    }

    /** Where the ranks stand on the schedule's grid, and what they wait for. */
    private String grid(List<RankTable.Row> rows) {
        List<OpPlace> standing = new ArrayList<>();
        List<OpPlace> awaited = new ArrayList<>();
        Schedule schedule = plan.training();
        for (RankTable.Row row : rows) {
            RankActivity activity = row.activity();
            if (activity == null || activity.state() == RankActivity.State.IDLE) {
                continue;
            }
            schedule = plan.schedule(activity.kind());
            int program = plan.grid().programOf(row.rank(), schedule);
            List<Op> ops = schedule.program(program).ops();
            if (activity.position() < ops.size()) {
                Op op = ops.get(activity.position());
                standing.add(new OpPlace(program, activity.position(), op));
                AwaitedOp.by(schedule, op).ifPresent(awaited::add);
            }
        }
        return standing.isEmpty() ? "" : OpGrid.ofStandstill(schedule, standing, awaited);
    }

    /** The rank's order around its position: {@code ... 0F1 0SEND_F1 >0RECV_B0< 0B0 ...}. */
    private String excerpt(int rank, RankActivity activity) {
        List<Op> ops = plan.program(activity.kind(), rank).ops();
        int at = activity.position();
        int from = Math.max(0, at - CONTEXT_OPS);
        int to = Math.min(ops.size(), at + CONTEXT_OPS + 1);
        var text = new StringBuilder(from > 0 ? "... " : "");
        for (int i = from; i < to; i++) {
            String op = OpText.print(ops.get(i), plan.training().shape());
            text.append(i == at ? ">" + op + "<" : op).append(i + 1 < to ? " " : "");
        }
        return text.append(to < ops.size() ? " ..." : "").toString();
    }
}
