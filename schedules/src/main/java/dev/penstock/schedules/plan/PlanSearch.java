package dev.penstock.schedules.plan;

import dev.penstock.schedules.plan.work.Layout;
import dev.penstock.schedules.plan.work.LayoutHardware;
import dev.penstock.schedules.plan.work.Layouts;
import dev.penstock.schedules.plan.work.PlanChoice;
import dev.penstock.schedules.plan.work.PlanRequest;
import dev.penstock.schedules.plan.work.RankHardware;
import dev.penstock.schedules.plan.work.RankMemory;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.PriorityQueue;
import java.util.TreeSet;

/**
 * Best first: always opens what has the lowest bound, a layout into splits, a split into
 * candidates, a candidate into a proved plan. When the lowest bound is above all that may be
 * listed, no better one is left, so the result is that of trying everything.
 */
final class PlanSearch {
    /** Something that may hold plans. */
    private sealed interface Node {
        /** No plan in it is faster. */
        long leastNanos();

        /** Where to look first. */
        default long expectedNanos() {
            return leastNanos();
        }

        /** Decides between equals. */
        long number();

        record OfLayout(long leastNanos, long number, LayoutHardware hardware) implements Node {}

        record OfSplit(long leastNanos, long number, SplitCandidates candidates, Split split)
                implements Node {}

        record OfCandidate(long leastNanos, long expectedNanos, long number, Candidate candidate)
                implements Node {}
    }

    private final PlanRequest request;
    private final SearchSpace space;
    private final SearchLimits limits;
    private final List<ScheduleFamily> families;
    private final PriorityQueue<Node> open =
            new PriorityQueue<>(
                    Comparator.comparingLong(Node::expectedNanos).thenComparingLong(Node::number));
    private final Prover prover = new Prover();
    private final TreeSet<Plan> plans = new TreeSet<>(Plan.BEST_FIRST);

    private final Refusals refusals = new Refusals();

    private long numbers;
    private long bounded;
    private long proved;

    private final Ranking ranking;

    /** No plan that takes longer is wanted; empty while there are too few. */
    private Optional<Long> slowest = Optional.empty();

    PlanSearch(PlanRequest request, SearchSpace space, SearchLimits limits, Ranking ranking) {
        this.ranking = ranking;
        this.request = request;
        this.space = space;
        this.limits = limits;
        this.families = ScheduleFamily.all(space.kinds(), space.chunks());
    }

    PlanReport run() {
        for (Layout layout : Layouts.of(request)) {
            var hardware = LayoutHardware.of(request.cluster(), layout);
            long least = LeastTime.ofLayout(request, hardware);
            open.add(new Node.OfLayout(least, numbers++, hardware));
        }
        while (!open.isEmpty() && !isExhausted()) {
            Node node = open.remove();
            if (!mayImprove(node.leastNanos())) {
                continue;
            }
            switch (node) {
                case Node.OfLayout layout -> split(layout.hardware());
                case Node.OfSplit split -> choose(split.split(), split.candidates());
                case Node.OfCandidate candidate -> prove(candidate.candidate());
            }
        }
        return report();
    }

    private boolean mayImprove(long leastNanos) {
        return slowest.isEmpty() || leastNanos <= slowest.get();
    }

    private boolean isExhausted() {
        return bounded >= limits.choices() || (!plans.isEmpty() && prover.ops() >= limits.ops());
    }

    private void split(LayoutHardware hardware) {
        Layout layout = hardware.layout();
        int sequences = request.batch() / layout.data();
        for (int sequencesEach : Layouts.divisors(sequences)) {
            for (int slices : space.slices()) {
                for (int chunks : space.chunks()) {
                    for (boolean recompute : space.recompute()) {
                        if (slices <= request.model().sequence()
                                && layout.pipeline() * chunks <= request.model().layers() + 2) {
                            for (var lengths : Layouts.slicings(request.model(), slices)) {
                                split(
                                        hardware,
                                        sequences,
                                        sequencesEach,
                                        lengths,
                                        chunks,
                                        recompute);
                            }
                        }
                    }
                }
            }
        }
    }

    private void split(
            LayoutHardware hardware,
            int sequences,
            int sequencesEach,
            List<Integer> lengths,
            int chunks,
            boolean recompute) {
        for (boolean vShaped : new boolean[] {false, true}) {
            var split =
                    new Split(
                            hardware,
                            sequences / sequencesEach,
                            sequencesEach,
                            lengths,
                            chunks,
                            vShaped,
                            recompute);
            Optional<ScheduleFamily> any = families.stream().filter(split::suits).findFirst();
            if (any.isPresent() && !split.isTooLarge()) {
                var candidates = SplitCandidates.of(request, split, any.get());
                bounded++;
                offer(new Node.OfSplit(candidates.leastNanos(), numbers++, candidates, split));
            }
        }
    }

    private void offer(Node node) {
        if (mayImprove(node.leastNanos())) {
            open.add(node);
        }
    }

    private void choose(Split split, SplitCandidates candidates) {
        for (ScheduleFamily family : families) {
            if (split.suits(family)) {
                candidates.each(
                        family,
                        new TreeSet<>(space.zeroStages()),
                        candidate -> {
                            bounded++;
                            offer(candidate);
                        },
                        refusal -> {
                            bounded++;
                            refusals.add(refusal);
                        });
            }
        }
    }

    private void offer(Candidate candidate) {
        offer(
                new Node.OfCandidate(
                        candidate.leastNanos(), candidate.expectedNanos(), numbers++, candidate));
    }

    private void prove(Candidate candidate) {
        proved++;
        switch (prover.prove(candidate)) {
            case Prover.Verdict.Proved(Plan plan) -> {
                if (mayImprove(plan.stepNanos()) && plans.add(plan)) {
                    slowest = ranking.slowest(plans, limits.plans());
                    while (!mayImprove(plans.last().stepNanos())) {
                        plans.pollLast();
                    }
                }
            }
            case Prover.Verdict.TooLarge tooLarge -> cutAnew(candidate, tooLarge);
            case Prover.Verdict.Impossible _ -> {}
        }
    }

    /** Gives layers to ranks with more room, now that it is known what the order holds. */
    private void cutAnew(Candidate candidate, Prover.Verdict.TooLarge tooLarge) {
        Optional<Cut> other =
                candidate.choice().chunks() == 1
                        ? MemoryFit.of(
                                        candidate.shape(),
                                        candidate.choice().zero(),
                                        rank -> tooLarge.peakUnits()[rank])
                                .fastestFitting(candidate.cut())
                        : Optional.empty();
        if (other.isPresent() && !other.get().partition().equals(candidate.cut().partition())) {
            offer(candidate.with(other.get()));
        } else {
            refuse(candidate, tooLarge.memory());
        }
    }

    private void refuse(Candidate candidate, RankMemory memory) {
        PlanChoice choice = candidate.choice();
        String device =
                RankHardware.smallestDevice(request.cluster(), choice.layout(), memory.rank());
        refusals.add(new Refusal(choice, memory, device, candidate.leastNanos()));
    }

    private PlanReport report() {
        Optional<Long> leastOpen =
                open.stream().map(Node::leastNanos).filter(this::mayImprove).min(Long::compare);
        List<Plan> best = ranking.first(plans, limits.plans());
        List<Refusal> shown =
                best.isEmpty()
                        ? new LeastMemory(request, space, families).find()
                        : refusals.fasterThan(best.getFirst().stepNanos());
        return new PlanReport(request, best, shown, bounded, proved, leastOpen);
    }
}
