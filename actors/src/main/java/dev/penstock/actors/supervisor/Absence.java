package dev.penstock.actors.supervisor;

import dev.penstock.actors.fault.RecoveryPolicy;
import dev.penstock.actors.spi.RunPlan;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * Brings ranks back that the run goes on without: has a process started for each, and when one is
 * there, asks for the plan in which the rank takes part again. The run follows it from the end of
 * the step under way.
 */
final class Absence {
    /** A plan that came to nothing, as when a disk was full, is asked for again after as many. */
    private static final int STEPS_TO_ASK_AGAIN = 10;

    private final RecoveryPolicy policy;
    private final RankTable ranks;
    private final Placer placer;
    private final Outbox out;
    private final StepDriver driver;

    /** Ranks that no plan of the run has; null while that is not known. */
    private @Nullable Set<Integer> never;

    /** Ranks whose process is on its way. */
    private final Set<Integer> awaited = new TreeSet<>();

    /** How often a process was started for a rank since it was lost. */
    private final Map<Integer, Integer> starts = new HashMap<>();

    /** Who is to be absent from the plan that is being made; null if none is. */
    private @Nullable Set<Integer> asked;

    /** The epoch in which that was asked. */
    private int askedIn;

    /** The last step that was done by then. */
    private long askedAfter;

    Absence(RecoveryPolicy policy, RankTable ranks, Placer placer, Outbox out, StepDriver driver) {
        this.policy = policy;
        this.ranks = ranks;
        this.placer = placer;
        this.out = out;
        this.driver = driver;
        if (ranks.revision().number() == 0) {
            never = Set.copyOf(ranks.plan().absent());
        }
    }

    /** Whether a plan without lost ranks is to be asked for. */
    boolean isAllowed() {
        return policy.degraded() && !ranks.plan().mirrors();
    }

    /** To be asked often, while the run goes on. */
    void look() {
        if (!isAllowed() || ranks.present() == ranks.size()) {
            return;
        }
        if (never == null) {
            ask(Set.of());
            return;
        }
        Set<Integer> back = await();
        if (back.isEmpty()) {
            asked = null;
        } else if (!driver.isToRevise() && !driver.interrupted()) {
            Set<Integer> absent = new TreeSet<>(ranks.plan().absent());
            absent.removeAll(back);
            ask(absent);
        }
    }

    /**
     * Has processes started for absent ranks, where none is on its way.
     *
     * @return ranks for which one is there
     */
    Set<Integer> await() {
        Set<Integer> gone = never;
        Set<Integer> back = new TreeSet<>();
        if (gone == null) {
            return back;
        }
        List<Integer> lost =
                ranks.plan().absent().stream().filter(rank -> !gone.contains(rank)).toList();
        for (int rank : lost) {
            if (placer.replacementFor(rank).isPresent()) {
                awaited.remove(rank);
                back.add(rank);
            } else if (awaited.add(rank)) {
                start(rank);
            }
        }
        return back;
    }

    private void start(int rank) {
        int before = starts.merge(rank, 1, Integer::sum) - 1;
        if (before < policy.maxRestarts()) {
            out.add(new Effect.StartProcess(Optional.of(rank)));
        } else if (before == policy.maxRestarts()) {
            String text =
                    "%s stays absent: %d processes that were started for it have ended"
                            .formatted(ranks.name(rank), before);
            out.notify(listener -> listener.onPlanNote(text));
        }
    }

    /** Ranks are back: of their next loss nothing is known. */
    void forget() {
        starts.keySet().removeIf(rank -> !ranks.isAbsent(rank));
        awaited.removeIf(rank -> !ranks.isAbsent(rank));
    }

    /** A process that was started for a rank has ended before the rank went there. */
    void onProcessDied(int rank) {
        awaited.remove(rank);
    }

    private void ask(Set<Integer> absent) {
        long completed = driver.completed();
        if (!absent.equals(asked)
                || askedIn != ranks.epoch()
                || completed >= askedAfter + STEPS_TO_ASK_AGAIN) {
            asked = absent;
            askedIn = ranks.epoch();
            askedAfter = completed;
            out.add(new Effect.AskPlan(ranks.revision(), absent));
        }
    }

    /** The plan without these ranks, if there is one. */
    void onPlan(Set<Integer> absent, Optional<RunPlan> made) {
        if (!absent.equals(asked) || askedIn != ranks.epoch()) {
            return; // asked before the run recovered
        }
        if (never == null) {
            never = made.map(RunPlan::absent).map(Set::copyOf).orElse(absentNow());
            asked = null;
            return;
        }
        made.filter(plan -> !Set.copyOf(plan.absent()).equals(absentNow()))
                .filter(ranks::canTakeOver)
                .ifPresent(driver::revise);
    }

    private Set<Integer> absentNow() {
        return Set.copyOf(ranks.plan().absent());
    }
}
