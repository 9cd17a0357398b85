package dev.penstock.actors.supervisor;

import dev.penstock.actors.fault.RecoveryPolicy;
import dev.penstock.actors.node.HostedRank;
import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.rank.RankCommand;
import dev.penstock.actors.rank.RankEvent;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.Timeouts;
import dev.penstock.actors.supervisor.RecoveryAttempt.Reason;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What raises a run's epoch: deaths, silence, broken links, steps that are not finite, moves. */
final class RecoveryCauses {
    private static final Logger LOG = LoggerFactory.getLogger(RecoveryCauses.class);

    private final RunPlan plan;
    private final RecoveryPolicy policy;
    private final RankTable ranks;
    private final Placer placer;
    private final Links links;
    private final Outbox out;
    private final StepDriver driver;
    private final RecoveryDriver recovery;
    private final RecoveryBudget budget;
    private final NotFiniteSteps notFinite;

    /** By rank, the process that has it if it lives; of a run that was taken up. */
    private Map<Integer, String> named = Map.of();

    RecoveryCauses(
            RunPlan plan,
            RecoveryPolicy policy,
            RankTable ranks,
            Placer placer,
            Links links,
            Outbox out,
            StepDriver driver,
            RecoveryDriver recovery,
            RecoveryBudget budget) {
        this.plan = plan;
        this.policy = policy;
        this.ranks = ranks;
        this.placer = placer;
        this.links = links;
        this.out = out;
        this.driver = driver;
        this.recovery = recovery;
        this.budget = budget;
        this.notFinite = new NotFiniteSteps(policy);
    }

    // ---- what raises the epoch ------------------------------------------------------------------

    /** Ranks are gone for good: their processes ended, or they did. */
    NextAction onDead(List<Integer> gone, String cause, long now) {
        return onDead(recovery.after(cause, now), gone, cause, now);
    }

    /**
     * Processes that the supervisor has started are gone. When no more may be started, their ranks
     * go to those that are left, if the policy is to do so: there is one fewer each time.
     */
    NextAction onProcessDead(List<Integer> gone, String cause, long now) {
        boolean mayCrowd = policy.enabled() && policy.rebalanceAfter().isPresent();
        return onDead(recovery.after(cause, now), gone, mayCrowd, cause, now);
    }

    private NextAction onDead(RecoveryAttempt before, List<Integer> gone, String cause, long now) {
        return onDead(before, gone, false, cause, now);
    }

    private NextAction onDead(
            RecoveryAttempt before, List<Integer> gone, boolean mayCrowd, String cause, long now) {
        gone.forEach(ranks::vacate);
        Optional<String> refused =
                recovery.isUnderWay() && before.bears(gone) ? Optional.empty() : spend(cause, now);
        boolean crowds = refused.isPresent() && mayCrowd && ranks.anyLives();
        if (refused.isPresent() && !crowds) {
            return new NextAction.Broken(refused.get());
        }
        RecoveryAttempt attempt = (crowds ? before.crowding() : before).died(gone);
        for (int rank : gone) {
            attempt = attempt.detectedAfter(ranks.silentNanos(rank, now));
        }
        return recovery.raise(attempt, cause, now);
    }

    /** Why there may be no other recovery, if it is one. */
    private Optional<String> spend(String cause, long now) {
        return recovery.isCounted(cause, now) ? Optional.empty() : budget.spend(cause, now);
    }

    /**
     * Nodes are gone before all ranks were open: what they were to have is placed again, and all
     * begin anew.
     */
    NextAction onLostInPlacing(List<Integer> gone, boolean withLink, String cause, long now) {
        RecoveryAttempt attempt = recovery.begin(new Reason.LossInPlacing(), cause, now);
        for (int rank = 0; rank < ranks.size(); rank++) {
            if (!ranks.hasNode(rank) && !ranks.isAbsent(rank)) {
                attempt = attempt.died(rank); // nobody has had it yet
            }
        }
        if (!withLink) {
            return onDead(attempt, gone, cause, now);
        }
        linkDiedWith(gone);
        return withOtherDriver(onDead(attempt, gone, cause, now), now);
    }

    /** Ranks say nothing any more, which proves nothing. */
    NextAction onSilent(List<Integer> silent, String cause, long now) {
        silent.forEach(ranks::silent);
        if (recovery.isPreparing()) {
            return recovery.retry(now); // nobody was promised anything in this epoch
        }
        Optional<String> refused = budget.spend(cause, now);
        if (refused.isPresent()) {
            return new NextAction.Broken(refused.get());
        }
        long silentNanos = ranks.silentNanos(silent.getFirst(), now);
        return recovery.raise(recovery.after(cause, now).detectedAfter(silentNanos), cause, now);
    }

    /**
     * Links broke; all ranks live, as far as is known. Where one process has them all, its threads
     * had to wait for a processor for too long.
     */
    NextAction onLinkLost(String cause, long now) {
        return raiseUnless(budget.spendOnLiving(cause, now), cause, now);
    }

    private NextAction raiseUnless(Optional<String> refused, String cause, long now) {
        return refused.<NextAction>map(NextAction.Broken::new)
                .orElseGet(() -> recovery.raise(recovery.after(cause, now), cause, now));
    }

    /**
     * A rank finds that its media driver is gone. Nobody may have said so because whoever started
     * it died as well, on another host, where that takes long to prove.
     */
    NextAction onDriverMissed(NodeInfo node, String cause, long now) {
        links.diedWith(node);
        return withOtherDriver(onLinkLost(cause, now), now);
    }

    /** A media driver is gone, and with it every link of its host. */
    NextAction onLinkDied(String directory, String cause, long now) {
        links.died(directory);
        return withOtherDriver(raiseUnless(spend(cause, now), cause, now), now);
    }

    /** Ranks are gone, and the media driver with them. */
    NextAction onDeadWithLink(List<Integer> gone, String cause, long now) {
        linkDiedWith(gone);
        return withOtherDriver(onDead(gone, cause, now), now);
    }

    private void linkDiedWith(List<Integer> gone) {
        List<NodeInfo> nodes = gone.stream().map(ranks::node).flatMap(Optional::stream).toList();
        if (nodes.isEmpty()) {
            links.died("");
        }
        nodes.forEach(links::diedWith);
    }

    private NextAction withOtherDriver(NextAction turn, long now) {
        if (turn instanceof NextAction.GoOn) {
            recovery.restartLink(now);
        }
        return turn;
    }

    /**
     * A rank was to start from a checkpoint that is damaged; it lives. All go back to one before
     * it.
     */
    NextAction onCheckpointDamaged(RankEvent.CheckpointDamaged damaged, long now) {
        String cause = damaged.reason();
        if (!driver.findOlderThan(damaged.step())) {
            return new NextAction.Broken(
                    cause
                            + "; the run began with this checkpoint and has no other; try --resume,"
                            + " which takes the newest that is whole");
        }
        return raiseUnless(budget.spendOnLiving(cause, now), cause, now);
    }

    /** Nothing moves, although all ranks live. A new epoch asks all again, or shows who hangs. */
    NextAction onStalled(String reason, long now) {
        return raiseUnless(budget.spend(reason, now), reason, now);
    }

    /**
     * Somebody is in an epoch that this supervisor did not raise. One that has just taken the run
     * up does not know of it because its journal lost its end: it goes beyond. For any other it is
     * the proof that it was replaced.
     *
     * @param heard higher than the run's, or used by another
     */
    NextAction onHigherEpoch(String who, int heard, long now) {
        if (!recovery.gathers()) {
            return new NextAction.Superseded(heard);
        }
        String cause = "%s is in epoch %d, of which the journal says nothing".formatted(who, heard);
        ranks.enter(heard);
        return recovery.raise(recovery.after(cause, now), cause, now);
    }

    /** Nothing of a step may be applied; all ranks live. */
    NextAction onNotFinite(long step, String cause, RecoveryPolicy.NonFinite policy, long now) {
        Optional<String> refused =
                notFinite
                        .refuse(step, cause, driver.lastCommit())
                        .or(() -> budget.spendOnLiving(cause, now));
        if (refused.isPresent()) {
            return new NextAction.Broken(refused.get());
        }
        Reason reason =
                switch (policy) {
                    case SKIP -> new Reason.LeaveOut(step);
                    case ROLLBACK -> new Reason.GoBack();
                    case HALT -> throw new IllegalArgumentException("the run is to end: " + cause);
                };
        return recovery.raise(recovery.begin(reason, cause, now), cause, now);
    }

    /**
     * Ranks leave their nodes, and all continue from the checkpoint that has their last step. Where
     * a node hosts others for their dead nodes' sake, such a guest leaves in place of its own.
     */
    NextAction onMove(Set<Integer> wanted, long now) {
        List<Integer> moving = movers(wanted);
        if (moving.isEmpty()) {
            return driver.resume(now);
        }
        String names = moving.stream().map(ranks::name).collect(Collectors.joining(" and "));
        String cause = "%s: on the way to other nodes".formatted(names);
        for (int rank : moving) {
            NodeInfo node = ranks.node(rank).orElseThrow();
            out.tell(rank, new RankCommand.Stop(ranks.epoch()));
            if (isFor(node, rank)) {
                placer.remove(node);
                out.add(new Effect.Leave(node));
            }
            ranks.vacate(rank);
        }
        RecoveryAttempt attempt = recovery.begin(new Reason.GoBack(), cause, now);
        return recovery.raise(attempt.died(moving), cause, now);
    }

    /**
     * The ranks follow another plan of the run: from what they hold if its stages are the same,
     * else from the checkpoint that has their last step. Ranks that take part again need nodes.
     */
    NextAction onRevise(RunPlan revised, long now) {
        List<Integer> joining = ranks.plan().absent().stream().filter(revised::isPresent).toList();
        if (joining.stream().anyMatch(rank -> placer.replacementFor(rank).isEmpty())) {
            return driver.resume(now); // it has gone again since
        }
        String cause = "the plan changes to " + revised.revision().words();
        Reason reason =
                ranks.canTakeOver(revised)
                        ? new Reason.Rewire(RankSet.NONE.with(joining))
                        : new Reason.GoBack();
        driver.follow(revised);
        return recovery.raise(recovery.begin(reason, cause, now), cause, now);
    }

    private List<Integer> movers(Set<Integer> wanted) {
        Set<Integer> moving = new TreeSet<>();
        wanted.stream().filter(this::mayLeave).forEach(moving::add);
        wanted.stream()
                .filter(rank -> !mayLeave(rank))
                .sorted()
                .forEach(rank -> guest(rank, moving).ifPresent(moving::add));
        return List.copyOf(moving);
    }

    /** One that lives with this rank and stays so far. */
    private Optional<Integer> guest(int rank, Set<Integer> moving) {
        return ranks.node(rank).map(ranks::on).orElse(List.of()).stream()
                .filter(other -> other != rank && !moving.contains(other) && mayLeave(other))
                .findFirst();
    }

    private boolean mayLeave(int rank) {
        return ranks.node(rank)
                .filter(node -> !isFor(node, rank) || ranks.on(node).size() == 1)
                .isPresent();
    }

    private static boolean isFor(NodeInfo node, int rank) {
        return node.rank().equals(Optional.of(rank));
    }

    // ---- after a supervisor's death -------------------------------------------------------------

    /**
     * Another supervisor had the run: asks who hosts what, for a lease at most. Ranks that nodes
     * have named get half of what a rank has for any answer: it may take a cluster seconds to list
     * them.
     *
     * @param taken with the processes where the named ranks are
     */
    void takeUp(RunBeginning.TakenUp taken, long now) {
        budget.takeUp(taken.run().counted(), now);
        named = taken.asked() ? taken.run().placed() : Map.of();
        String cause = "the supervisor was gone, another took the run up";
        Timeouts limits = plan.timeouts();
        Duration patience = taken.asked() ? limits.stallLimit().dividedBy(2) : limits.lease();
        var reason = new Reason.TakeUp(now + patience.toNanos(), taken.asked());
        recovery.raise(recovery.begin(reason, cause, now), cause, now);
    }

    /**
     * A node says which ranks it hosts. One that nobody else has is taken into the run; one that
     * lives elsewhere too, or comes when all is decided, is sent away. Of one that is the run's it
     * may have said so before, and was not heard.
     */
    NextAction onHostedRanks(NodeInfo node, int epoch, List<HostedRank> hosted, long now) {
        for (HostedRank each : hosted) {
            int rank = each.rank();
            if (recovery.gathers() && !ranks.hasNode(rank) && !ranks.isAbsent(rank)) {
                ranks.found(each, node, now);
                recovery.onFound(rank);
                out.tell(rank, new RankCommand.Prepare(ranks.epoch()));
            } else if (!ranks.isTheOne(each, node)) {
                LOG.warn("run {} has no use for {} of {}", plan.runId(), each, node);
                out.add(new Effect.Dismiss(node, each, new RankCommand.Stop(ranks.epoch())));
            } else if (recovery.isPreparing() && !ranks.listens(rank)) {
                ranks.hosted(rank, now);
                recovery.onHosted(rank, each.birthEpoch(), now);
            }
        }
        Optional<Integer> absent = node.rank().filter(rank -> isAbsent(rank, node, hosted));
        if (absent.isPresent()) {
            return recovery.onNowhere(absent.get(), now);
        }
        List<Integer> gone = ranks.lostAgain(node, epoch, hosted);
        return gone.isEmpty()
                ? NextAction.GO_ON
                : onDead(gone, "a rank ended, or never began, unheard", now);
    }

    /** Whether the one node that was to have a rank says that it does not. */
    private boolean isAbsent(int rank, NodeInfo node, List<HostedRank> hosted) {
        return recovery.gathers()
                && node.process().equals(named.get(rank))
                && !ranks.hasNode(rank)
                && hosted.stream().noneMatch(each -> each.rank() == rank);
    }
}
