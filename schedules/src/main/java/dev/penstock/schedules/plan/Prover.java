package dev.penstock.schedules.plan;

import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.plan.work.PlanChoice;
import dev.penstock.schedules.plan.work.RankMemory;
import dev.penstock.schedules.plan.work.ZeroStage;
import dev.penstock.schedules.simulate.InFlight;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import dev.penstock.schedules.simulate.Timeline;
import dev.penstock.schedules.validate.ScheduleValidator;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.LongStream;

/**
 * Turns a candidate into a plan: generates and lowers its order, measures its memory, has it judged
 * with the channels that a run would have, and simulates it.
 */
final class Prover {
    /** What became of a candidate. */
    sealed interface Verdict {
        /** It holds. */
        record Proved(Plan plan) implements Verdict {}

        /**
         * A device is too small.
         *
         * @param memory of the rank that is missing most
         * @param peakUnits entry r is what rank r holds at its peak, whatever the cut
         */
        record TooLarge(RankMemory memory, int[] peakUnits) implements Verdict {}

        /** There is no such order, or the judge refuses it. */
        record Impossible(String reason) implements Verdict {}
    }

    /** What choices that differ only after the last backward have in common. */
    private record SameOrder(PlanChoice choice, List<Integer> partition) {
        static SameOrder of(Candidate candidate) {
            PlanChoice c = candidate.choice();
            ZeroStage zero = c.zero().dividesGradients() ? c.zero() : ZeroStage.NONE;
            return new SameOrder(c.withZero(zero), candidate.cut().partition());
        }
    }

    /**
     * @param peaks by rank: most bytes of activations
     * @param units by rank: most live units
     * @param busy by rank
     * @param ends by rank: when its last op ends, reductions apart
     * @param complete by stage: when its rank comes to its last reduction
     */
    private record Timed(long[] peaks, int[] units, long[] busy, long[] ends, long[] complete) {}

    private final Map<SameOrder, Optional<Timed>> known = new HashMap<>();
    private long ops;

    /** Ops of all orders so far, generated and lowered: a measure of the effort. */
    long ops() {
        return ops;
    }

    Verdict prove(Candidate candidate) {
        SameOrder order = SameOrder.of(candidate);
        Optional<Timed> timed = known.get(order);
        if (timed != null) {
            return timed.map(t -> verdict(candidate, t))
                    .orElse(new Verdict.Impossible("refused before"));
        }
        Schedule schedule;
        try {
            schedule = Generators.generate(candidate.choice().kind(), candidate.shape());
        } catch (IllegalArgumentException e) {
            known.put(order, Optional.empty());
            return new Verdict.Impossible(String.valueOf(e.getMessage()));
        }
        schedule.programs().forEach(program -> ops += program.ops().size());
        long[] peaks = peaks(schedule, candidate.cut()::keptBytes);
        int[] units = LongStream.of(peaks(schedule, (_, _) -> 1)).mapToInt(n -> (int) n).toArray();
        RankMemory tightest = tightest(memory(candidate, peaks));
        if (tightest.excess() > 0) {
            return new Verdict.TooLarge(tightest, units);
        }
        Optional<Timed> found = time(candidate, schedule, peaks, units);
        known.put(order, found);
        return found.map(t -> verdict(candidate, t))
                .orElse(new Verdict.Impossible("the judge refuses it"));
    }

    private Optional<Timed> time(
            Candidate candidate, Schedule schedule, long[] peaks, int[] units) {
        Schedule lowered = LoweredPlan.lowered(candidate.choice(), schedule);
        InFlight inFlight = InFlight.auto(lowered);
        lowered.programs().forEach(program -> ops += program.ops().size());
        if (!schedule.placement().equals(candidate.cut().placement())
                || !ScheduleValidator.validate(
                                lowered,
                                LoweredPlan.conditions(
                                        candidate, inFlight, memory(candidate, peaks)))
                        .isValid()) {
            return Optional.empty();
        }
        Timeline timeline = ScheduleSimulator.simulate(lowered, candidate.costs(), inFlight);
        int ranks = peaks.length;
        var busy = new long[ranks];
        var ends = new long[ranks];
        var complete = new long[candidate.shape().stages()];
        for (RankProgram program : lowered.programs()) {
            int rank = program.rank();
            for (int i = 0; i < program.ops().size(); i++) {
                Op op = program.ops().get(i);
                if (!op.computations().isEmpty()) {
                    busy[rank] += timeline.durationNanos(rank, i);
                }
                // what choices of one order share is when a reduction may begin, not how long it
                // takes
                if (op instanceof Op.ReduceGradients(int stage)) {
                    complete[stage] = ends[rank];
                } else {
                    ends[rank] = Math.max(ends[rank], timeline.endNanos(rank, i));
                }
            }
        }
        return Optional.of(new Timed(peaks, units, busy, ends, complete));
    }

    private static Verdict verdict(Candidate candidate, Timed timed) {
        List<RankMemory> memory = memory(candidate, timed.peaks());
        RankMemory tightest = tightest(memory);
        if (tightest.excess() > 0) {
            return new Verdict.TooLarge(tightest, timed.units());
        }
        long step = 0;
        long end = 0;
        long busiest = 0;
        long busy = 0;
        long tail = 0;
        int ranks = timed.ends().length;
        for (int rank = 0; rank < ranks; rank++) {
            long after =
                    reducedNanos(candidate, timed, rank)
                            - timed.ends()[rank]
                            + candidate.tails()[rank];
            step = Math.max(step, timed.ends()[rank] + after);
            end = Math.max(end, timed.ends()[rank]);
            busiest = Math.max(busiest, timed.busy()[rank]);
            tail = Math.max(tail, after);
            busy += timed.busy()[rank];
        }
        double bubble = end == 0 ? 0 : 1 - (double) busy / ((double) end * ranks);
        return new Verdict.Proved(
                new Plan(
                        candidate.choice(),
                        candidate.cut().partition(),
                        step,
                        busiest,
                        tail,
                        bubble,
                        memory));
    }

    /** When a rank has reduced all its gradients, one stage after another, and computed all. */
    private static long reducedNanos(Candidate candidate, Timed timed, int rank) {
        long reduced = 0;
        List<Integer> stages =
                candidate.cut().placement().stagesOf(rank).stream()
                        .sorted(Comparator.comparingLong(stage -> timed.complete()[stage]))
                        .toList();
        for (int stage : stages) {
            reduced = Math.max(reduced, timed.complete()[stage]) + candidate.reductions()[stage];
        }
        return Math.max(reduced, timed.ends()[rank]);
    }

    private static long[] peaks(Schedule schedule, ActivationWalk.KeptBytes kept) {
        return schedule.programs().stream()
                .mapToLong(program -> ActivationWalk.peak(program, kept))
                .toArray();
    }

    private static List<RankMemory> memory(Candidate candidate, long[] peaks) {
        Cut cut = candidate.cut();
        var memory = new ArrayList<RankMemory>();
        for (int rank = 0; rank < peaks.length; rank++) {
            memory.add(
                    RankMemory.of(
                            cut.work(),
                            cut.partition(),
                            cut.placement(),
                            candidate.choice().zero(),
                            rank,
                            peaks[rank]));
        }
        return memory;
    }

    private static RankMemory tightest(List<RankMemory> memory) {
        RankMemory tightest = memory.getFirst();
        for (RankMemory rank : memory) {
            if (rank.excess() > tightest.excess()) {
                tightest = rank;
            }
        }
        return tightest;
    }
}
