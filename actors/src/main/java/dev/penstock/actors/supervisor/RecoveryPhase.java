package dev.penstock.actors.supervisor;

import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.rank.RankEvent;
import dev.penstock.actors.spi.RunPlan;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.stream.Stream;

/**
 * Where a recovery stands in an epoch.
 *
 * <pre>
 *   Preparing --decided from where--> Resuming --all ranks back--> no recovery
 *       ^                                |
 *       '------------ next epoch --------'
 * </pre>
 *
 * Whoever writes one answers with the next; what is done about it goes into the {@link Outbox}.
 */
sealed interface RecoveryPhase {
    RecoveryAttempt attempt();

    /** Since when answers are awaited; while the run parks or has no room, there is no hurry. */
    long sinceNanos();

    /** The same phase of an attempt about which more is known. */
    RecoveryPhase with(RecoveryAttempt attempt);

    /** The same phase, in which answers are awaited only from now on. */
    RecoveryPhase since(long now);

    /** Whether a rank did what it was asked last: to prepare, or to come back. */
    boolean hasAnswered(int rank);

    /**
     * The living ranks stop and say what they hold; nothing is decided yet. Whether mirrors'
     * holders have room is a question of this phase, not a phase of its own: while it is asked,
     * answers, deaths and nodes still come, and may settle the matter.
     *
     * @param prepared answers, by rank
     * @param askedFor ranks that a process was asked for
     */
    record Preparing(
            RecoveryAttempt attempt,
            long sinceNanos,
            Answers prepared,
            RankSet askedFor,
            HoldersRoom room)
            implements RecoveryPhase {
        /** An epoch begins: nothing was answered or decided in it. */
        static Preparing begin(RecoveryAttempt attempt, long now) {
            return new Preparing(
                    attempt, now, Answers.NONE, RankSet.NONE, new HoldersRoom.Unasked());
        }

        @Override
        public Preparing with(RecoveryAttempt known) {
            return new Preparing(known, sinceNanos, prepared, askedFor, room);
        }

        @Override
        public Preparing since(long now) {
            return new Preparing(attempt, now, prepared, askedFor, room);
        }

        /** A rank answered. */
        Preparing answered(RankEvent.Prepared answer) {
            return new Preparing(attempt, sinceNanos, prepared.with(answer), askedFor, room);
        }

        /** A rank is left behind; what it holds, mirrors too, is out of reach. */
        Preparing excluding(int rank) {
            return new Preparing(
                    attempt.died(rank), sinceNanos, prepared.without(rank), askedFor, room);
        }

        /** A process was asked for. */
        Preparing asksProcessFor(int rank) {
            return new Preparing(attempt, sinceNanos, prepared, askedFor.with(rank), room);
        }

        /** What is known of the holders' room. */
        Preparing with(HoldersRoom known) {
            return new Preparing(attempt, sinceNanos, prepared, askedFor, known);
        }

        /** It is decided from where the run restarts. */
        Resuming resume(
                RecoveryAttempt known, RestartSource source, List<Integer> fills, long now) {
            return new Resuming(known, now, source, fills, RankSet.NONE);
        }

        @Override
        public boolean hasAnswered(int rank) {
            return prepared.of(rank).isPresent();
        }

        /** Whether every prepared rank has seen the step, or will when its commit is told again. */
        boolean allReach(long step) {
            return prepared.stream().allMatch(answer -> answer.state().reaches(step));
        }

        /** Whether this rank is prepared and holds a mirror of the other that reaches the step. */
        boolean holds(RunPlan plan, int holder, int rank, long step) {
            return prepared.of(holder)
                    .filter(answer -> holds(plan, answer, rank, step))
                    .isPresent();
        }

        /**
         * By missing rank, the first prepared one that holds a mirror of it which reaches the step;
         * empty if there is not one of each.
         */
        Optional<Map<Integer, Integer>> holders(RunPlan plan, List<Integer> missing, long step) {
            Map<Integer, Integer> holders = new TreeMap<>();
            for (int rank : missing) {
                prepared.stream()
                        .filter(answer -> holds(plan, answer, rank, step))
                        .findFirst()
                        .ifPresent(answer -> holders.put(rank, answer.rank()));
            }
            return holders.size() == missing.size() ? Optional.of(holders) : Optional.empty();
        }

        private static boolean holds(RunPlan plan, RankEvent.Prepared answer, int rank, long step) {
            int named = plan.isCopy(answer.rank(), rank) ? answer.rank() : rank;
            return answer.mirrors().stream()
                    .anyMatch(mirror -> mirror.rank() == named && mirror.reaches(step));
        }

        /** Nodes have said whether they have room. */
        Preparing onRoom(Map<Integer, NodeInfo> asked, boolean granted) {
            return with(room.answered(asked, granted));
        }
    }

    /**
     * What ranks answered; immutable. An answer more costs a copy of those that stand in its row,
     * and of the list of rows: copies of all would be quadratic work.
     */
    record Answers(SortedMap<Integer, SortedMap<Integer, RankEvent.Prepared>> rows) {
        private static final int WIDTH = 64;
        static final Answers NONE = new Answers(Collections.emptySortedMap());

        Answers with(RankEvent.Prepared answer) {
            return changed(answer.rank(), row -> row.put(answer.rank(), answer));
        }

        Answers without(int rank) {
            return changed(rank, row -> row.remove(rank));
        }

        private Answers changed(int rank, Consumer<SortedMap<Integer, RankEvent.Prepared>> change) {
            SortedMap<Integer, RankEvent.Prepared> row = new TreeMap<>(row(rank));
            change.accept(row);
            SortedMap<Integer, SortedMap<Integer, RankEvent.Prepared>> all = new TreeMap<>(rows);
            all.put(rank / WIDTH, row);
            return new Answers(all);
        }

        private SortedMap<Integer, RankEvent.Prepared> row(int rank) {
            return rows.getOrDefault(rank / WIDTH, Collections.emptySortedMap());
        }

        Optional<RankEvent.Prepared> of(int rank) {
            return Optional.ofNullable(row(rank).get(rank));
        }

        /** By rising rank. */
        Stream<RankEvent.Prepared> stream() {
            return rows.values().stream().flatMap(row -> row.values().stream());
        }

        List<Integer> ranks() {
            return stream().map(RankEvent.Prepared::rank).toList();
        }

        int size() {
            return rows.values().stream().mapToInt(Map::size).sum();
        }
    }

    /**
     * It is decided from where all go on; ranks come back.
     *
     * @param fills ranks whose mirrors are to be filled
     * @param back ranks that are open again
     */
    record Resuming(
            RecoveryAttempt attempt,
            long sinceNanos,
            RestartSource source,
            List<Integer> fills,
            RankSet back)
            implements RecoveryPhase {
        public Resuming {
            fills = List.copyOf(fills);
        }

        @Override
        public Resuming with(RecoveryAttempt known) {
            return new Resuming(known, sinceNanos, source, fills, back);
        }

        @Override
        public Resuming since(long now) {
            return new Resuming(attempt, now, source, fills, back);
        }

        /** A rank is open again. */
        Resuming cameBack(int rank) {
            return new Resuming(attempt, sinceNanos, source, fills, back.with(rank));
        }

        @Override
        public boolean hasAnswered(int rank) {
            return back.contains(rank);
        }
    }
}
