package dev.penstock.actors.supervisor;

import dev.penstock.actors.spi.RunPlan;
import java.util.List;
import java.util.OptionalLong;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

/** What becomes of a run because time passes and something does not happen. */
final class Deadlines {
    private final RunPlan plan;
    private final RankTable ranks;
    private final Outbox out;
    private final LeaseExtensions extensions;
    private final StallWatch stalls;
    private final FirstPlacement placement;
    private final StepDriver driver;
    private final RecoveryDriver recovery;
    private final RecoveryCauses causes;
    private final RunCourse course;
    private long placingSinceNanos;
    private long saidAgainNanos;
    private long lastTickNanos;

    Deadlines(
            RunPlan plan,
            RankTable ranks,
            Outbox out,
            LeaseExtensions extensions,
            StallWatch stalls,
            FirstPlacement placement,
            StepDriver driver,
            RecoveryDriver recovery,
            RecoveryCauses causes,
            RunCourse course,
            long now) {
        this.plan = plan;
        this.ranks = ranks;
        this.out = out;
        this.extensions = extensions;
        this.stalls = stalls;
        this.placement = placement;
        this.driver = driver;
        this.recovery = recovery;
        this.causes = causes;
        this.course = course;
        this.placingSinceNanos = now;
        this.saidAgainNanos = now;
        this.lastTickNanos = now;
    }

    /** While ranks wait for room, it is nobody's fault that they do not open. */
    void placeLater(long now) {
        placingSinceNanos = now;
    }

    /** See {@link RunCoordinator#onTick}. */
    void onTick(long now) {
        boolean slept = now - lastTickNanos > plan.timeouts().lease().dividedBy(2).toNanos();
        lastTickNanos = now;
        if (slept) {
            ranks.renewLeases(now); // this process was suspended: renewals may be in the mailbox
        }
        switch (course.phase()) {
            case PLACING -> {
                extensions.onTick(now); // who starves now may be silent when the run begins
                long waiting = now - placingSinceNanos;
                long limit = plan.timeouts().start().toNanos();
                long sinceSaid = now - Math.max(saidAgainNanos, placingSinceNanos + limit / 3);
                if (sinceSaid > limit / 6) { // this, or its answer, may be lost as well
                    saidAgainNanos = now;
                    placement.repeat();
                }
                if (waiting > limit) {
                    course.fail(
                            "the ranks did not open within timeouts.start = %d s (%d s have passed since their start was ordered): %s; a machine that is busy, or a large model, needs longer: try timeouts.start = %d s"
                                    .formatted(
                                            plan.timeouts().start().toSeconds(),
                                            TimeUnit.NANOSECONDS.toSeconds(waiting),
                                            ranks.missing(),
                                            2
                                                    * Math.max(
                                                            plan.timeouts().start().toSeconds(),
                                                            TimeUnit.NANOSECONDS.toSeconds(
                                                                    waiting))),
                            now);
                }
            }
            case RUNNING -> {
                if (!driver.onlyPublishes() && noticeSilence(now)) {
                    noticeStalls(now);
                }
            }
            case RECOVERING -> {
                if (driver.interrupted() && recovery.hasNothingToSaveSoon()) {
                    course.stopUnsaved(now);
                } else if (noticeSilence(now)) {
                    course.follow(recovery.onTick(now), now);
                }
            }
            case STOPPING -> course.endIfTooLate(now);
        }
    }

    /** False if somebody is silent who was not. */
    private boolean noticeSilence(long now) {
        extensions.onTick(now);
        List<Integer> silent =
                ranks.newlySilent(now, plan.timeouts().lease()).stream()
                        .filter(rank -> !extensions.extend(rank, now))
                        .toList();
        if (silent.isEmpty()) {
            return true;
        }
        String cause =
                silent.stream().map(rank -> silence(rank, now)).collect(Collectors.joining("; "));
        course.follow(causes.onSilent(silent, cause, now), now);
        return false;
    }

    private String silence(int rank, long now) {
        String silence = ranks.silence(rank, now, plan.timeouts().lease());
        return extensions.remark(rank).map(remark -> silence + "; " + remark).orElse(silence);
    }

    private void noticeStalls(long now) {
        List<RankTable.Row> rows = ranks.rows();
        OptionalLong since = driver.waitsForRanksSince();
        stalls.report(rows, since, now)
                .ifPresent(text -> out.notify(listener -> listener.onStall(text)));
        driver.repeatOrders(now);
        stalls.hopeless(rows, since, now)
                .ifPresent(reason -> course.follow(new NextAction.Stalled(reason), now));
    }
}
