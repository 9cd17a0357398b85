package dev.penstock.actors.cluster;

import dev.penstock.actors.journal.JournalRecord;
import dev.penstock.actors.journal.JournalledRun;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.supervisor.RunBeginning;
import dev.penstock.actors.supervisor.TestPlans;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** A run's directory, which all processes see: its journal, and who holds it. */
final class SimRunFiles {
    private static final Map<Integer, RunPlan> PLANS = Collections.synchronizedMap(new HashMap<>());

    final ClusterScenario.Wanted wanted;
    final RunPlan plan;
    private final Map<Integer, String> placed = new TreeMap<>();
    private @Nullable SimSeed holder;
    private @Nullable RunOutcome ending;
    private boolean begun;
    private int epoch = 1;
    private long step;

    SimRunFiles(ClusterScenario.Wanted wanted, SimSeed holder) {
        this.wanted = wanted;
        this.holder = holder;
        RunPlan any = PLANS.computeIfAbsent(wanted.ranks(), TestPlans::chain);
        this.plan =
                new RunPlan(
                        wanted.name(),
                        any.hash(),
                        any.training(),
                        any.evaluation(),
                        any.inFlight(),
                        any.steps(),
                        any.timeouts(),
                        any.mirrors());
    }

    String name() {
        return wanted.name();
    }

    boolean isHeldBy(SimSeed seed) {
        return seed == holder;
    }

    @Nullable SimSeed holder() {
        return holder;
    }

    void hold(SimSeed seed) {
        holder = seed;
    }

    void giveBack(SimSeed seed) {
        if (holder == seed) {
            holder = null;
        }
    }

    /** Whether another seed would take it up. */
    boolean isUnfinished() {
        return begun && ending == null;
    }

    boolean hasBegun() {
        return begun;
    }

    void begin() {
        begun = true;
    }

    int epoch() {
        return epoch;
    }

    int raise() {
        return ++epoch;
    }

    void place(int rank, String process) {
        placed.put(rank, process);
    }

    /** Where its ranks went last, by its journal. */
    Collection<String> processes() {
        return placed.values();
    }

    long step() {
        return step;
    }

    void commit() {
        step++;
    }

    @Nullable RunOutcome ending() {
        return ending;
    }

    void end(RunOutcome outcome) {
        ending = outcome;
    }

    /** The run as the seed that holds it has it. */
    ClusterRun open() {
        return new ImaginedRun(name(), plan, beginning()) {
            @Override
            public List<Long> plannedBytes(List<Integer> homes) {
                return bytes(homes);
            }

            @Override
            public Optional<Integer> ranksPerNode() {
                return Optional.of(wanted.ranksPerNode()).filter(most -> most > 0);
            }

            @Override
            public boolean crossesHosts() {
                return !wanted.oneHost();
            }
        };
    }

    /** What ranks hold, by the lowest rank that lives beside each. */
    List<Long> bytes(List<Integer> homes) {
        List<Long> bytes = new ArrayList<>();
        for (int rank = 0; rank < homes.size(); rank++) {
            boolean isFirst = wanted.apartCostsMore() && homes.get(rank) == rank;
            bytes.add(isFirst ? 2 * ImaginedRun.GIB : ImaginedRun.GIB);
        }
        return bytes;
    }

    private RunBeginning beginning() {
        if (!begun) {
            return RunBeginning.FIRST;
        }
        List<JournalRecord> journal = new ArrayList<>();
        journal.add(new JournalRecord.Began(plan.runId(), plan.hash(), plan.ranks(), 1, 0));
        placed.forEach((rank, process) -> journal.add(new JournalRecord.Placed(rank, process)));
        journal.add(new JournalRecord.EpochRaised(epoch, "as known"));
        if (step > 0) {
            journal.add(new JournalRecord.Committed(epoch, step, 1, 3, 1));
        }
        return new RunBeginning.TakenUp(JournalledRun.of(journal).orElseThrow(), true);
    }
}
