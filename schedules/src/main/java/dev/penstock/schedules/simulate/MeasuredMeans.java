package dev.penstock.schedules.simulate;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/**
 * The mean times of computations in the median of measured steps, and of gathers, sums and copies
 * where the steps tell. Add the steps one after another; what a tensor takes between ranks cannot
 * be told from times of ops, since a receive may contain its wait.
 */
public final class MeasuredMeans {
    private record Work(int stage, int slice, ComputeKind kind) {
        static final Comparator<Work> ORDER =
                Comparator.comparingInt(Work::stage)
                        .thenComparingInt(Work::slice)
                        .thenComparing(Work::kind);

        static Work of(Op.Compute op) {
            return new Work(op.stage(), op.unit().slice(), ComputeKind.of(op));
        }
    }

    private record Pair(Work forward, Work partner, long nanos) {}

    private final StepMedians<Work> computations = new StepMedians<>(Work.ORDER);

    /** Of gathers inside of computations. */
    private final StepMedians<Work> gathering = new StepMedians<>(Work.ORDER);

    /** By stage. */
    private final StepMedians<Integer> gathers = new StepMedians<>(Comparator.naturalOrder());

    private final StepMedians<Integer> reductions = new StepMedians<>(Comparator.naturalOrder());

    /** Of copies beside the computations, by stage. */
    private final StepMedians<Integer> offloads = new StepMedians<>(Comparator.naturalOrder());

    private final StepMedians<Integer> reloads = new StepMedians<>(Comparator.naturalOrder());
    private final StepMedians<Integer> loads = new StepMedians<>(Comparator.naturalOrder());
    private final StepMedians<Integer> leaving = new StepMedians<>(Comparator.naturalOrder());

    /** Of every step for which it was told. */
    private final List<Double> updates = new ArrayList<>();

    /** Of every step with such pairs: their time over that of their parts. */
    private final List<Double> overlapFactors = new ArrayList<>();

    /** Where replicas share micro-batches, of each rank alone. */
    private final List<MeasuredMeans> ranks = new ArrayList<>();

    /** Of no steps yet. */
    public MeasuredMeans() {}

    /**
     * Adds what was measured in a step.
     *
     * @param pipelines that ran the same program in the step
     */
    public void add(List<Timeline> pipelines) {
        List<Pair> pairs = new ArrayList<>();
        for (Timeline pipeline : pipelines) {
            for (RankProgram program : pipeline.schedule().programs()) {
                addRank(pipeline, program, pairs);
            }
        }
        endStep(pairs);
        Timeline first = pipelines.getFirst();
        if (first.schedule().placement().wiring().isPresent()) {
            for (RankProgram program : first.schedule().programs()) {
                if (ranks.size() == program.rank()) {
                    ranks.add(new MeasuredMeans());
                }
                ranks.get(program.rank()).addAlone(first, program);
            }
        }
    }

    private void addAlone(Timeline step, RankProgram program) {
        List<Pair> pairs = new ArrayList<>();
        addRank(step, program, pairs);
        endStep(pairs);
    }

    private void endStep(List<Pair> pairs) {
        double together = 0;
        double alone = 0;
        for (Pair pair : pairs) {
            if (computations.isInStep(pair.forward) && computations.isInStep(pair.partner)) {
                together += pair.nanos;
                alone += wholeMean(pair.forward) + wholeMean(pair.partner);
            }
        }
        if (alone > 0) {
            overlapFactors.add(together / alone);
        }
        List.of(computations, gathering).forEach(StepMedians::endStep);
        List.of(gathers, reductions, offloads, reloads, loads, leaving)
                .forEach(StepMedians::endStep);
    }

    private void addRank(Timeline step, RankProgram program, List<Pair> pairs) {
        int rank = program.rank();
        for (int i = 0; i < step.opsRun(rank); i++) {
            long nanos = step.keptNanos(rank, i);
            long copied = step.copyNanos(rank, i);
            switch (program.ops().get(i)) {
                case Op.Compute op -> {
                    gathering.add(Work.of(op), step.gatheringNanos(rank, i));
                    computations.add(Work.of(op), nanos - step.gatheringNanos(rank, i));
                }
                case Op.Overlapped(Op.Forward forward, Op.Compute partner) ->
                        pairs.add(new Pair(Work.of(forward), Work.of(partner), nanos));
                case Op.Offload(WorkUnit unit) when copied > 0 ->
                        offloads.add(unit.stage(), copied);
                case Op.Reload(WorkUnit unit) when copied > 0 -> reloads.add(unit.stage(), copied);
                case Op.GatherParameters(int stage, _) when copied > 0 -> loads.add(stage, copied);
                case Op.ReduceGradients(int stage) when copied > 0 -> {
                    reductions.add(stage, nanos);
                    leaving.add(stage, copied);
                }
                case Op.GatherParameters(int stage, _) when step.tellsCollectives() ->
                        gathers.add(stage, nanos);
                case Op.ReduceGradients(int stage) when step.tellsCollectives() ->
                        reductions.add(stage, nanos);
                case Op.Transfer _, Op.ActivationOp _, Op.ParameterOp _, Op.ReduceGradients _ -> {}
            }
        }
    }

    /**
     * Adds what came after the ops of a step.
     *
     * @param nanos from the end of the last op to that of the last rank's update: its commit too
     */
    public void addUpdate(long nanos) {
        updates.add((double) nanos);
    }

    /** What comes after the ops of a usual step; 0 if no step told. */
    public long updateNanos() {
        return updates.isEmpty() ? 0 : Math.round(StepMedians.median(updates));
    }

    private double wholeMean(Work work) {
        return computations.mean(work) + gathering.mean(work);
    }

    /**
     * The lines of a profile: computations by stage, slice and kind, then collectives, copies and
     * the update. The overlap factor compares pairs with their parts, where these were measured
     * alone too; without such pairs there is none.
     */
    public List<ProfileLine> lines() {
        var lines = new ArrayList<ProfileLine>();
        for (Work work : computations.keys()) {
            long nanos = computations.median(work);
            lines.add(new ProfileLine.Computation(work.kind, work.stage, work.slice, nanos));
        }
        for (Work work : gathering.keys()) {
            long nanos = gathering.median(work);
            if (nanos > 0) {
                lines.add(new ProfileLine.Gathering(work.kind, work.stage, work.slice, nanos));
            }
        }
        gathers.keys().forEach(s -> lines.add(new ProfileLine.GatherWork(s, gathers.median(s))));
        reductions
                .keys()
                .forEach(s -> lines.add(new ProfileLine.ReduceWork(s, reductions.median(s))));
        loads.keys().forEach(s -> lines.add(new ProfileLine.Gather(s, loads.median(s))));
        leaving.keys().forEach(s -> lines.add(new ProfileLine.Reduce(s, leaving.median(s))));
        offloads.keys().forEach(s -> lines.add(new ProfileLine.Offload(s, offloads.median(s))));
        reloads.keys().forEach(s -> lines.add(new ProfileLine.Reload(s, reloads.median(s))));
        if (!updates.isEmpty()) {
            lines.add(new ProfileLine.Update(updateNanos()));
        }
        if (!overlapFactors.isEmpty()) {
            lines.add(new ProfileLine.OverlapFactor(StepMedians.median(overlapFactors)));
        }
        return lines;
    }

    /**
     * Where replicas share micro-batches, entry r has the lines of rank r's computations alone,
     * none if it did nothing; else there are no entries.
     */
    public List<List<ProfileLine>> ofRanks() {
        return ranks.stream()
                .map(
                        rank ->
                                rank.lines().stream()
                                        .filter(ProfileLine.Computation.class::isInstance)
                                        .toList())
                .toList();
    }

    /** Costs of the measured program; where replicas share micro-batches, of computations alone. */
    public CostModel costs() {
        return ranks.isEmpty()
                ? new ProfileCosts(lines())
                : CostModel.ofRanks(ofRanks().stream().map(ProfileCosts::new).toList());
    }
}
