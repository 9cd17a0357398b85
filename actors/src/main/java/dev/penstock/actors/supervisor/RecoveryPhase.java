package dev.penstock.actors.supervisor;

import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.rank.RankEvent;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Consumer;
import java.util.stream.Collectors;
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
            HoldersRoom room,
            Detour detour,
            Refuges refuges)
            implements RecoveryPhase {
        /** An epoch begins: nothing was answered or decided in it. */
        static Preparing begin(RecoveryAttempt attempt, long now) {
            return new Preparing(
                    attempt,
                    now,
                    Answers.NONE,
                    RankSet.NONE,
                    new HoldersRoom.Unasked(),
                    new Detour.Unsought(),
                    Refuges.NONE);
        }

        @Override
        public Preparing with(RecoveryAttempt known) {
            return new Preparing(known, sinceNanos, prepared, askedFor, room, detour, refuges);
        }

        @Override
        public Preparing since(long now) {
            return new Preparing(attempt, now, prepared, askedFor, room, detour, refuges);
        }

        /** A rank answered. */
        Preparing answered(RankEvent.Prepared answer) {
            return new Preparing(
                    attempt, sinceNanos, prepared.with(answer), askedFor, room, detour, refuges);
        }

        /** A rank is left behind; what it holds, mirrors too, is out of reach. */
        Preparing excluding(int rank) {
            return new Preparing(
                    attempt.died(rank),
                    sinceNanos,
                    prepared.without(rank),
                    askedFor,
                    room,
                    detour,
                    refuges);
        }

        /** A process was asked for. */
        Preparing asksProcessFor(int rank) {
            return new Preparing(
                    attempt, sinceNanos, prepared, askedFor.with(rank), room, detour, refuges);
        }

        /** What is known of the holders' room. */
        Preparing with(HoldersRoom known) {
            return new Preparing(attempt, sinceNanos, prepared, askedFor, known, detour, refuges);
        }

        /** What is known of a plan without the lost ranks. */
        Preparing with(Detour known) {
            return new Preparing(attempt, sinceNanos, prepared, askedFor, room, known, refuges);
        }

        /** What is known of the nodes of others that missing ranks may go to. */
        Preparing with(Refuges known) {
            return new Preparing(attempt, sinceNanos, prepared, askedFor, room, detour, known);
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

        /**
         * Micro-batches whose gradients of a step all stages hold, each on the rank that does it by
         * this plan: these need not be done again. None if a rank holds what is another's now: a
         * sum gives nothing back, so all begin anew.
         */
        List<Integer> foldedEverywhere(RunPlan plan, long step) {
            Placement placement = plan.training().placement();
            List<Folded> all =
                    prepared.stream().flatMap(answer -> Folded.of(answer, step)).toList();
            if (all.stream().anyMatch(each -> placement.rankOf(each.unit) != each.rank)) {
                return List.of();
            }
            Map<Integer, Long> stages =
                    all.stream()
                            .collect(
                                    Collectors.groupingBy(
                                            each -> each.unit.microBatch(),
                                            TreeMap::new,
                                            Collectors.counting()));
            return stages.entrySet().stream()
                    .filter(microBatch -> microBatch.getValue() == placement.stages())
                    .map(Map.Entry::getKey)
                    .toList();
        }

        /** What a rank has in its sums. */
        private record Folded(int rank, WorkUnit unit) {
            static Stream<Folded> of(RankEvent.Prepared answer, long step) {
                return answer.folded().stream()
                        .filter(stage -> stage.step() == step)
                        .flatMap(
                                stage ->
                                        stage.microBatches().stream()
                                                .map(m -> new WorkUnit(stage.stage(), m, 0)))
                        .map(unit -> new Folded(answer.rank(), unit));
            }
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
            return with(room.answered(asked, granted)).with(refuges.answered(asked, granted));
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

    /** Whether there is room for missing ranks where their mirrors are. */
    sealed interface HoldersRoom {
        /** It has not mattered yet. */
        record Unasked() implements HoldersRoom {}

        /**
         * The nodes have been asked.
         *
         * @param nodes where each missing rank would go
         */
        record Asked(Map<Integer, NodeInfo> nodes) implements HoldersRoom {
            public Asked {
                nodes = Map.copyOf(nodes);
            }
        }

        /** They have answered. */
        record Answered(Map<Integer, NodeInfo> nodes, boolean granted) implements HoldersRoom {
            public Answered {
                nodes = Map.copyOf(nodes);
            }
        }

        /** Whether these nodes were asked for these ranks, and for no others since. */
        default boolean isAbout(Map<Integer, NodeInfo> ranks) {
            return switch (this) {
                case Unasked _ -> false;
                case Asked(var nodes) -> nodes.equals(ranks);
                case Answered(var nodes, _) -> nodes.equals(ranks);
            };
        }

        /** After an answer, which may be to a question that is out of date. */
        default HoldersRoom answered(Map<Integer, NodeInfo> ranks, boolean granted) {
            return isAbout(ranks) ? new Answered(ranks, granted) : this;
        }
    }

    /**
     * Nodes of others that missing ranks go to because no node comes for them; they are asked for
     * one rank after the other.
     *
     * @param found for these ranks there is room
     * @param asked what is found and one more; empty while no answer is awaited
     * @param full processes that had no room
     */
    record Refuges(Map<Integer, NodeInfo> found, Map<Integer, NodeInfo> asked, Set<String> full) {
        static final Refuges NONE = new Refuges(Map.of(), Map.of(), Set.of());

        public Refuges {
            found = Map.copyOf(found);
            asked = Map.copyOf(asked);
            full = Set.copyOf(full);
        }

        /** All may have room again, unless an answer is awaited. */
        Refuges anew() {
            return asked.isEmpty() ? new Refuges(found, asked, Set.of()) : this;
        }

        /** One rank more is to go to a node. */
        Refuges asking(int rank, NodeInfo node) {
            Map<Integer, NodeInfo> more = new TreeMap<>(found);
            more.put(rank, node);
            return new Refuges(found, more, full);
        }

        /** After an answer, which may be to a question that is out of date. */
        Refuges answered(Map<Integer, NodeInfo> ranks, boolean granted) {
            if (!ranks.equals(asked)) {
                return this;
            }
            if (granted) {
                return new Refuges(asked, Map.of(), full);
            }
            Set<String> more = new TreeSet<>(full);
            asked.forEach(
                    (rank, node) -> {
                        if (!found.containsKey(rank)) {
                            more.add(node.process());
                        }
                    });
            return new Refuges(found, Map.of(), more);
        }
    }

    /** Whether there is a plan of the run without the ranks that are lost. */
    sealed interface Detour {
        /** It has not mattered yet. */
        record Unsought() implements Detour {}

        /**
         * The plan is being made.
         *
         * @param absent from it
         */
        record Sought(Set<Integer> absent, long sinceNanos) implements Detour {
            public Sought {
                absent = Set.copyOf(absent);
            }
        }

        /** It was made, or there is none. */
        record Found(Set<Integer> absent, Optional<RunPlan> plan) implements Detour {
            public Found {
                absent = Set.copyOf(absent);
            }
        }

        /** Whether a plan without these ranks was asked for, and for no other since. */
        default boolean isAbout(Set<Integer> ranks) {
            return switch (this) {
                case Unsought _ -> false;
                case Sought(var absent, long _) -> absent.equals(ranks);
                case Found(var absent, _) -> absent.equals(ranks);
            };
        }

        /** After an answer, which may be to a question that is out of date. */
        default Detour answered(Set<Integer> ranks, Optional<RunPlan> plan) {
            return isAbout(ranks) ? new Found(ranks, plan) : this;
        }
    }
}
