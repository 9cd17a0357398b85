package dev.penstock.schedules.generate.zerobubble;

import dev.penstock.schedules.ir.PipelineShape;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/**
 * Looks for the order with split backwards that reaches the barrier first under a limit on memory;
 * of those that reach it at the same time, the one whose ranks idle least between their first and
 * last op. Starts from the hand-made orders, so what it finds is never worse.
 */
final class ZeroBubbleSearch {
    /** Leads from that of 1F1B to that of a pipeline that never waits for its first backward. */
    private static final int MOST_LEAD_STEPS = 8;

    /** Passes to place in all greedy orders together; large problems try fewer leads. */
    private static final long GREEDY_PASSES = 1L << 27;

    private static final int GAP_CHOICES = 5;

    /** Up to so many micro-batches on all ranks together, every order is tried. */
    private static final int EXACT_UNITS = 12;

    /** Enough for every problem of that size that was met in tests. */
    private static final long EXACT_BEGINNINGS = 3_000_000;

    private final SplitProblem problem;
    private final SplitBounds bounds;
    private SplitOrder best;
    private SplitTiming bestTiming;

    private ZeroBubbleSearch(SplitProblem problem) {
        this.problem = problem;
        bounds = SplitBounds.of(problem);
        best = oneByOne();
        bestTiming = SplitTiming.of(best, problem);
    }

    static SplitOrder best(SplitProblem problem) {
        var search = new ZeroBubbleSearch(problem);
        search.tryHandMade();
        search.tryGreedy();
        search.tryAll();
        return search.best;
    }

    /** Fits into any memory: one micro-batch at a time. */
    private SplitOrder oneByOne() {
        var passes = new ArrayList<SplitPass>();
        for (int i = 0; i < problem.microBatches(); i++) {
            passes.addAll(List.of(SplitPass.values()));
        }
        return new SplitOrder(Collections.nCopies(problem.ranks(), passes));
    }

    private void tryHandMade() {
        var shape = PipelineShape.of(problem.ranks(), problem.microBatches());
        offer(SplitOrder.of(ZeroBubbleH1.schedule(shape)));
        offer(SplitOrder.of(ZeroBubbleH2.schedule(shape)));
    }

    private void tryGreedy() {
        for (List<Integer> leads : leads()) {
            for (boolean forwardFirst : new boolean[] {false, true}) {
                for (int gapQuarters = 0; gapQuarters < GAP_CHOICES; gapQuarters++) {
                    if (atBounds()) {
                        return;
                    }
                    var choices = new SplitGreedy.Choices(leads, forwardFirst, gapQuarters);
                    SplitGreedy.order(problem, choices, bestTiming.makespan())
                            .ifPresent(this::offer);
                }
            }
        }
    }

    /**
     * How far ranks may run ahead: the last by 1 micro-batch, every rank before it by some more,
     * between 1 and what keeps it busy until its first gradient is back.
     */
    private Set<List<Integer>> leads() {
        int ranks = problem.ranks();
        double forwards = 0;
        double roundTrips = 0;
        for (int rank = 0; rank < ranks; rank++) {
            forwards += problem.nanos(rank, SplitPass.FORWARD);
            roundTrips +=
                    problem.nanos(rank, SplitPass.FORWARD)
                            + problem.nanos(rank, SplitPass.BACKWARD_INPUT)
                            + 2 * problem.hopNanos(rank);
        }
        double most = forwards == 0 ? problem.limit() : roundTrips / forwards;
        long passesPerLead = 2L * GAP_CHOICES * 3 * ranks * problem.microBatches();
        long steps = Math.clamp(GREEDY_PASSES / passesPerLead, 1, MOST_LEAD_STEPS);
        var leads = new LinkedHashSet<List<Integer>>();
        for (int step = 0; step <= steps; step++) {
            double perRank = 1 + (most - 1) * step / steps;
            var lead = new ArrayList<Integer>();
            for (int rank = 0; rank < ranks; rank++) {
                double wanted = 1 + Math.ceil(perRank * (ranks - 1 - rank) - 1e-9);
                lead.add((int) Math.min(problem.limit(), wanted));
            }
            leads.add(lead);
        }
        return leads;
    }

    private void tryAll() {
        if (problem.ranks() * problem.microBatches() <= EXACT_UNITS
                && bestTiming.makespan() > bounds.makespan()) {
            SplitExactSearch.shorterThan(problem, bestTiming.makespan(), EXACT_BEGINNINGS)
                    .ifPresent(this::offer);
        }
    }

    private boolean atBounds() {
        return bestTiming.makespan() <= bounds.makespan()
                && bestTiming.longestSpan() <= bounds.span();
    }

    private void offer(SplitOrder order) {
        if (order.peak() <= problem.limit()) {
            SplitTiming timing = SplitTiming.of(order, problem);
            if (timing.compareTo(bestTiming) < 0) {
                best = order;
                bestTiming = timing;
            }
        }
    }
}
