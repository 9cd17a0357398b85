package dev.penstock.actors.supervisor;

import dev.penstock.actors.dataplane.DriverGoneException;
import dev.penstock.actors.fault.RecoveryPolicy;
import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.rank.RankEvent;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.supervisor.RunCourse.Phase;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What ends or hurts a run's ranks, nodes and links, and what comes of it in each phase. */
final class Failures {
    private static final Logger LOG = LoggerFactory.getLogger(Failures.class);

    private final RunPlan plan;
    private final RecoveryPolicy policy;
    private final RankTable ranks;
    private final Placer placer;
    private final Outbox out;
    private final StepDriver driver;
    private final Absence absence;
    private final RecoveryCauses causes;
    private final RunCourse course;
    private int sparesReplaced;

    Failures(
            RunPlan plan,
            RecoveryPolicy policy,
            RankTable ranks,
            Placer placer,
            Outbox out,
            StepDriver driver,
            Absence absence,
            RecoveryCauses causes,
            RunCourse course) {
        this.plan = plan;
        this.policy = policy;
        this.ranks = ranks;
        this.placer = placer;
        this.out = out;
        this.driver = driver;
        this.absence = absence;
        this.causes = causes;
        this.course = course;
    }

    /** See {@link RunCoordinator#onProcessDied}. */
    void onProcessDied(long pid, Optional<Integer> startedFor, String how, long now) {
        Optional<NodeInfo> node = placer.ofProcess(pid);
        node.ifPresent(placer::remove);
        List<Integer> gone = new ArrayList<>(node.map(ranks::on).orElse(List.of()));
        startedFor
                .filter(rank -> !ranks.hasNode(rank) && !ranks.isAbsent(rank))
                .ifPresent(gone::add);
        startedFor.filter(ranks::isAbsent).ifPresent(absence::onProcessDied);
        if (gone.isEmpty()) {
            LOG.warn("run {}: a process without a rank is gone: {}", plan.runId(), how);
            if (node.filter(NodeInfo::spare).isPresent()) {
                replaceSpare();
            }
        } else {
            onDead(gone, causes::onProcessDead, how, now);
        }
    }

    /** What dies again and again will not be helped. */
    private void replaceSpare() {
        if (!course.is(Phase.STOPPING) && sparesReplaced < policy.maxRestarts()) {
            sparesReplaced++;
            out.add(new Effect.StartProcess(Optional.empty()));
        }
    }

    /** See {@link RunCoordinator#onNodeDied}. */
    void onNodeDied(String process, boolean withLink, String how, long now) {
        String cause = "node %s died: %s".formatted(process, how);
        List<NodeInfo> nodes = placer.of(process);
        nodes.forEach(placer::remove);
        List<Integer> gone = nodes.stream().flatMap(node -> ranks.on(node).stream()).toList();
        if (course.is(Phase.PLACING)) {
            if (!gone.isEmpty() || withLink) {
                course.follow(causes.onLostInPlacing(gone, withLink, cause, now), now);
            }
            return;
        }
        if (gone.isEmpty() && withLink) {
            onLinkDied("", how, now);
        }
        if (!gone.isEmpty()) {
            onDead(gone, withLink ? causes::onDeadWithLink : causes::onDead, how, now);
        }
    }

    /** What comes of deaths in a run that has begun. */
    private interface Consequence {
        NextAction of(List<Integer> gone, String cause, long now);
    }

    private void onDead(List<Integer> gone, Consequence consequence, String how, long now) {
        String names = gone.stream().map(ranks::name).collect(Collectors.joining(" and "));
        String cause = "%s died: %s, after step %d".formatted(names, how, driver.completed());
        switch (course.phase()) {
            case PLACING -> {
                gone.forEach(ranks::vacate);
                course.fail(cause, now);
            }
            case RUNNING, RECOVERING -> {
                if (driver.onlyPublishes()) {
                    gone.forEach(ranks::vacate);
                } else {
                    course.follow(consequence.of(gone, cause, now), now);
                }
            }
            case STOPPING -> {
                gone.forEach(ranks::vacate);
                course.finishIfStopped();
            }
        }
    }

    /** A rank cannot go on. */
    void onFailed(RankEvent.Failed failed, long now) {
        boolean opensOrStops = course.is(Phase.PLACING) || course.is(Phase.STOPPING);
        if (!opensOrStops && driver.onlyPublishes()) {
            ranks.vacate(failed.rank());
        } else if (opensOrStops || failed.repeats()) {
            course.fail(failed.reason(), now);
        } else {
            course.follow(causes.onDead(List.of(failed.rank()), failed.reason(), now), now);
        }
    }

    void onStopped(int rank, long now) {
        switch (course.phase()) {
            case STOPPING -> {
                ranks.stopped(rank);
                course.finishIfStopped();
            }
            case PLACING -> {
                ranks.stopped(rank);
                course.fail("%s stopped by itself".formatted(ranks.name(rank)), now);
            }
            case RUNNING, RECOVERING ->
                    onDead(List.of(rank), causes::onDead, "it stopped by itself", now);
        }
    }

    void onLinkLost(RankEvent.LinkLost lost, long now) {
        if (course.is(Phase.PLACING)) {
            course.fail(lost.reason(), now);
        } else if (lost.epoch() == ranks.epoch()
                && !course.is(Phase.STOPPING)
                && !driver.onlyPublishes()) {
            Optional<NodeInfo> missing =
                    ranks.node(lost.rank())
                            .filter(Links::names)
                            .filter(_ -> DriverGoneException.isReasonOf(lost.reason()));
            course.follow(
                    missing.isPresent()
                            ? causes.onDriverMissed(missing.get(), lost.reason(), now)
                            : causes.onLinkLost(lost.reason(), now),
                    now);
        }
    }

    /** See {@link RunCoordinator#onLinkDied}. */
    void onLinkDied(String directory, String how, long now) {
        String cause = "the media driver died: " + how;
        switch (course.phase()) {
            case PLACING -> course.fail(cause, now);
            case RUNNING -> {
                if (!driver.onlyPublishes()) {
                    course.follow(causes.onLinkDied(directory, cause, now), now);
                }
            }
            case RECOVERING -> // opens links, whatever is left of the run
                    course.follow(causes.onLinkDied(directory, cause, now), now);
            case STOPPING -> {} // nobody needs it any more
        }
    }
}
