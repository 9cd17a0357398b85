package dev.penstock.schedules.plan;

import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.plan.work.Layout;
import dev.penstock.schedules.plan.work.PipelineWork;
import dev.penstock.schedules.plan.work.PlanChoice;
import dev.penstock.schedules.plan.work.PlanRequest;
import dev.penstock.schedules.plan.work.RankHardware;
import dev.penstock.schedules.plan.work.RankMemory;
import dev.penstock.schedules.plan.work.ZeroStage;
import java.util.Comparator;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;

/** Makes the candidates of a split, and tells those apart that cannot fit. */
final class SplitCandidates {
    private final Split split;
    private final PipelineShape shape;
    private final Cut fastest;

    /** Bounds on the fastest cut, which most candidates have; by whether backwards are split. */
    private final Map<ZeroStage, Candidate> whole = new EnumMap<>(ZeroStage.class);

    private final Map<ZeroStage, Candidate> inParts = new EnumMap<>(ZeroStage.class);

    private SplitCandidates(Split split, Cut fastest) {
        this.split = split;
        this.shape = split.shape();
        this.fastest = fastest;
    }

    static SplitCandidates of(PlanRequest request, Split split, ScheduleFamily anyFamily) {
        var work =
                PipelineWork.of(
                        request,
                        split.hardware(),
                        split.sequences(),
                        split.sliceLengths(),
                        split.recompute());
        Layout layout = split.hardware().layout();
        var placement = anyFamily.placement(layout.pipeline(), split.chunks());
        return new SplitCandidates(split, Cut.fastest(work, split.microBatches(), placement));
    }

    /** A bound for all candidates. */
    long leastNanos() {
        // several chunks are cut in one way only; one chunk in another if memory is short
        long longest = fastest.longestStageNanos() * split.microBatches();
        return split.chunks() == 1
                ? longest
                : Math.max(
                        longest,
                        Math.min(
                                onFastestCut(ZeroStage.NONE, false).leastNanos() - tail(false),
                                onFastestCut(ZeroStage.NONE, true).leastNanos() - tail(true)));
    }

    /** No other ZeRO stage saves more than the longest tail. */
    private long tail(boolean parts) {
        long longest = 0;
        for (long tail : onFastestCut(ZeroStage.NONE, parts).leastTails()) {
            longest = Math.max(longest, tail);
        }
        return longest;
    }

    void each(
            ScheduleFamily family,
            Iterable<ZeroStage> zeroStages,
            Consumer<Candidate> fitting,
            Consumer<Refusal> refused) {
        for (ZeroStage zero : zeroStages) {
            if (zero != ZeroStage.NONE && split.hardware().layout().data() == 1) {
                continue;
            }
            var fit = MemoryFit.atLeast(family, shape, zero);
            Candidate first = onFastestCut(zero, family.splitsBackward()).with(family.kind());
            RankMemory tightest = fit.tightest(fastest);
            if (tightest.excess() <= 0) {
                fitting.accept(first);
                continue;
            }
            Optional<Cut> other =
                    split.chunks() == 1 ? fit.fastestFitting(fastest) : Optional.empty();
            other.ifPresentOrElse(
                    cut ->
                            fitting.accept(
                                    Candidate.of(
                                            first.choice(), shape, cut, family.splitsBackward())),
                    () -> refused.accept(refusal(first, tightest)));
        }
    }

    /** The least that a choice needs on the cut that needs least memory. */
    RankMemory leastMemory(ScheduleFamily family, ZeroStage zero) {
        var fit = MemoryFit.atLeast(family, shape, zero);
        return fit.tightest(split.chunks() == 1 ? fit.smallest(fastest) : fastest);
    }

    /** What a choice needs on that cut, measured on its order; empty if it has none. */
    Optional<Refusal> measured(ScheduleFamily family, ZeroStage zero) {
        Schedule schedule;
        try {
            schedule = Generators.generate(family.kind(), shape);
        } catch (IllegalArgumentException e) {
            return Optional.empty();
        }
        List<RankProgram> programs = schedule.programs();
        var fit =
                MemoryFit.of(
                        shape,
                        zero,
                        rank -> (int) ActivationWalk.peak(programs.get(rank), (_, _) -> 1));
        Cut cut = split.chunks() == 1 ? fit.smallest(fastest) : fastest;
        return programs.stream()
                .map(program -> memory(cut, zero, program))
                .max(Comparator.comparingLong(RankMemory::excess))
                .map(
                        tightest ->
                                refusal(
                                        onFastestCut(zero, family.splitsBackward())
                                                .with(family.kind()),
                                        tightest));
    }

    private static RankMemory memory(Cut cut, ZeroStage zero, RankProgram program) {
        return RankMemory.of(
                cut.work(),
                cut.partition(),
                cut.placement(),
                zero,
                program.rank(),
                ActivationWalk.peak(program, cut::keptBytes));
    }

    private static Refusal refusal(Candidate candidate, RankMemory tightest) {
        PlanRequest request = candidate.cut().work().request();
        String device =
                RankHardware.smallestDevice(
                        request.cluster(), candidate.choice().layout(), tightest.rank());
        return new Refusal(candidate.choice(), tightest, device, candidate.leastNanos());
    }

    private Candidate onFastestCut(ZeroStage zero, boolean parts) {
        return (parts ? inParts : whole)
                .computeIfAbsent(
                        zero,
                        z -> {
                            var choice =
                                    new PlanChoice(
                                            split.hardware().layout(),
                                            z,
                                            "",
                                            split.chunks(),
                                            split.microBatches(),
                                            split.sliceLengths(),
                                            split.recompute());
                            return Candidate.of(choice, shape, fastest, parts);
                        });
    }
}
