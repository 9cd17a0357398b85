package dev.penstock.actors.journal;

import dev.penstock.actors.journal.JournalRecord.Committed;
import dev.penstock.actors.precision.LossScaleHistory;
import dev.penstock.actors.precision.LossScaler;
import dev.penstock.actors.spi.PlanRevision;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.NavigableSet;
import java.util.Optional;
import java.util.TreeMap;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * Where a run stands, as its journal says: what a supervisor takes it up with that did not see it.
 *
 * @param began the first words of the start that is told here: a journal may hold several, of which
 *     the last counts
 * @param epoch the highest that any start of the run has reached
 * @param completed the newest step that was committed or left out and not taken back
 * @param applied the newest step that the ranks' states are after, or will be when its commit is
 *     told again; less than {@code completed} if the last step was left out
 * @param commit of the step {@code applied}, which not all ranks may have heard of; empty if
 *     nothing was committed since the run began or went back
 * @param published step of the newest complete checkpoint that this start has written; -1 if none
 * @param counted the recoveries since the run began
 * @param placed the process that each rank went to last; lacks ranks that never had one, and all of
 *     them where an earlier version wrote the journal
 * @param revision of the run's plan that it follows
 * @param ending why the run is over; empty if it is not
 * @param lossScaled the loss scaler where the run began; empty if the loss is not scaled
 * @param leftOut steps of which nothing was applied, rising
 */
public record JournalledRun(
        JournalRecord.Began began,
        int epoch,
        long completed,
        long applied,
        Optional<Committed> commit,
        long published,
        List<JournalRecord.Counted> counted,
        Map<Integer, String> placed,
        PlanRevision revision,
        Optional<JournalRecord> ending,
        Optional<JournalRecord.LossScaled> lossScaled,
        List<Long> leftOut) {
    public JournalledRun {
        leftOut = List.copyOf(leftOut);
        counted = List.copyOf(counted);
        placed = Map.copyOf(placed);
    }

    /** No checkpoint. */
    public static final long NONE = -1;

    /** Reads what was written; empty where no run began. */
    public static Optional<JournalledRun> of(List<JournalRecord> records) {
        var reader = new Reader();
        records.forEach(reader::take);
        return reader.result();
    }

    /** The least that has to be written for {@link #of} to answer this. */
    public List<JournalRecord> records() {
        List<JournalRecord> records = new ArrayList<>();
        records.add(began);
        records.addAll(counted);
        new TreeMap<>(placed)
                .forEach((rank, process) -> records.add(new JournalRecord.Placed(rank, process)));
        records.add(new JournalRecord.EpochRaised(epoch, "as known so far"));
        if (revision.number() > 0) {
            records.add(new JournalRecord.Revised(revision));
        }
        lossScaled.ifPresent(records::add);
        leftOut.stream().filter(step -> step <= applied).map(this::skipped).forEach(records::add);
        if (commit.isPresent()) {
            records.add(commit.get());
        } else {
            records.add(new JournalRecord.RolledBack(epoch, applied));
        }
        leftOut.stream().filter(step -> step > applied).map(this::skipped).forEach(records::add);
        if (published != NONE) {
            records.add(new JournalRecord.Published(published));
        }
        ending.ifPresent(records::add);
        return records;
    }

    private JournalRecord skipped(long step) {
        return new JournalRecord.Skipped(epoch, step);
    }

    /** The same run, in which this epoch was used although its journal does not say so. */
    public JournalledRun usedEpoch(int used) {
        return new JournalledRun(
                began,
                Math.max(epoch, used),
                completed,
                applied,
                commit,
                published,
                counted,
                placed,
                revision,
                ending,
                lossScaled,
                leftOut);
    }

    /**
     * The same run with the newest checkpoint that is there and whole. The journal's word for it is
     * not taken: a checkpoint may have become complete when there was nobody left to write that
     * down, and one that was complete may be damaged or gone.
     *
     * @param newest its step; {@link #NONE} if there is none
     */
    public JournalledRun withPublished(long newest) {
        return new JournalledRun(
                began,
                epoch,
                completed,
                applied,
                commit,
                newest,
                counted,
                placed,
                revision,
                ending,
                lossScaled,
                leftOut);
    }

    /**
     * The loss scales up to the last completed step.
     *
     * @param start the scaler where the run began, as the configuration has it; what the journal
     *     says comes first
     */
    public LossScaleHistory scales(Optional<LossScaler> start) {
        long from = lossScaled.map(JournalRecord.LossScaled::step).orElse(began.completed());
        Optional<LossScaler> first =
                start.map(
                        given ->
                                lossScaled
                                        .flatMap(
                                                said ->
                                                        LossScaler.parse(
                                                                given.rules(), said.state()))
                                        .orElse(given));
        var scales = new LossScaleHistory(first, from);
        scales.replay(leftOut, completed);
        return scales;
    }

    private static final class Reader {
        private JournalRecord.@Nullable Began began;
        private int epoch;
        private long completed;
        private long applied;
        private @Nullable Committed commit;
        private long published = NONE;
        private final List<JournalRecord.Counted> counted = new ArrayList<>();
        private final Map<Integer, String> placed = new TreeMap<>();
        private PlanRevision revision = PlanRevision.NONE;
        private @Nullable JournalRecord ending;
        private JournalRecord.@Nullable LossScaled lossScaled;
        private final NavigableSet<Long> leftOut = new TreeSet<>();

        void take(JournalRecord record) {
            switch (record) {
                case JournalRecord.Began next -> {
                    began = next;
                    raise(next.epoch());
                    completed = next.completed();
                    applied = completed;
                    commit = null;
                    published = NONE;
                    counted.clear();
                    placed.clear();
                    revision = PlanRevision.NONE;
                    ending = null;
                    lossScaled = null;
                    leftOut.clear();
                }
                case JournalRecord.EpochRaised(int to, String _) -> raise(to);
                case JournalRecord.Counted recovery -> counted.add(recovery);
                case JournalRecord.Placed(int rank, String process) -> placed.put(rank, process);
                case Committed next -> {
                    raise(next.epoch());
                    commit = next;
                    completed = next.step();
                    applied = completed;
                    leftOut.tailSet(completed, true).clear();
                    if (next.skips()) {
                        leftOut.add(completed);
                    }
                }
                case JournalRecord.Skipped(int in, long step) -> {
                    raise(in);
                    completed = step;
                    leftOut.add(step);
                }
                case JournalRecord.RolledBack(int in, long step) -> {
                    raise(in);
                    commit = null;
                    completed = step;
                    applied = step;
                    leftOut.tailSet(step, false).clear();
                }
                case JournalRecord.LossScaled scaled -> lossScaled = scaled;
                case JournalRecord.Published(long step) -> published = step;
                case JournalRecord.Revised(PlanRevision next) -> revision = next;
                case JournalRecord.Failed failed -> ending = failed;
                case JournalRecord.Ended ended -> ending = ended;
            }
        }

        private void raise(int to) {
            epoch = Math.max(epoch, to);
        }

        Optional<JournalledRun> result() {
            JournalRecord.Began first = began;
            return first == null
                    ? Optional.empty()
                    : Optional.of(
                            new JournalledRun(
                                    first,
                                    epoch,
                                    completed,
                                    applied,
                                    Optional.ofNullable(commit),
                                    published,
                                    counted,
                                    placed,
                                    revision,
                                    Optional.ofNullable(ending),
                                    Optional.ofNullable(lossScaled),
                                    List.copyOf(leftOut)));
        }
    }
}
