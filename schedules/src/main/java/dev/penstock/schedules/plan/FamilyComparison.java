package dev.penstock.schedules.plan;

import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.generate.base.GenerateOptions;
import dev.penstock.schedules.generate.base.OpCosts;
import dev.penstock.schedules.generate.base.ScheduleKind;
import dev.penstock.schedules.ir.Channel;
import dev.penstock.schedules.ir.LayerRange;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;
import dev.penstock.schedules.lower.GatherSettings;
import dev.penstock.schedules.lower.Lowering;
import dev.penstock.schedules.lower.LoweringOptions;
import dev.penstock.schedules.simulate.BubbleReport;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.InFlight;
import dev.penstock.schedules.simulate.MemoryProfile;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import dev.penstock.schedules.validate.Conditions;
import dev.penstock.schedules.validate.ScheduleValidator;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.OptionalInt;
import java.util.function.Predicate;

/**
 * All families for the same work: so many ranks and micro-batches, the same costs. A chunk costs
 * its part of the rank's layers, a slice its part of the sequence, so that a family gains nothing
 * by cutting finer but what its order makes of it.
 *
 * @param rows families that run in this shape, the shortest makespan first
 * @param refused families that do not, with what they say
 */
public record FamilyComparison(List<Row> rows, List<Refusal> refused) {
    /** Divisible by all numbers of chunks and slices up to 10, so that parts are not rounded. */
    private static final long SCALE = 2520L * 1000;

    /**
     * The work to compare for.
     *
     * @param chunks stages per rank of families that have more than one
     * @param sliceLengths token slices of families that cut sequences
     * @param costs of one micro-batch through all of a rank's layers
     * @param lowering what a run adds to the orders
     * @param gatherNanos of all of a rank's layers, beside the computations
     * @param reduceNanos the same
     */
    public record Work(
            int ranks,
            int microBatches,
            int chunks,
            List<Integer> sliceLengths,
            OpCosts costs,
            LoweringOptions lowering,
            long gatherNanos,
            long reduceNanos) {
        public Work {
            sliceLengths = List.copyOf(sliceLengths);
        }
    }

    /**
     * One family.
     *
     * @param makespan in the unit of the costs
     * @param bubble idle time of all ranks over their time
     * @param idleInSpan the part of it between a rank's first and last computation
     * @param peakActivations most that a rank holds, in activations of one micro-batch for all its
     *     layers
     * @param traffic boundary tensors of whole micro-batches that leave a rank, on average
     * @param gathers how often a rank's parameters are gathered, on average
     * @param reductions how often its gradients are reduced
     */
    public record Row(
            String kind,
            int chunks,
            int slices,
            double makespan,
            double bubble,
            double idleInSpan,
            double peakActivations,
            double traffic,
            double gathers,
            double reductions) {}

    /** A family that does not run in this shape. */
    public record Refusal(String kind, String reason) {}

    public FamilyComparison {
        rows = List.copyOf(rows);
        refused = List.copyOf(refused);
    }

    /** Generates, proves and simulates every family. */
    public static FamilyComparison of(Work work) {
        var rows = new ArrayList<Row>();
        var refused = new ArrayList<Refusal>();
        for (String name : Generators.kinds()) {
            ScheduleKind kind = Generators.kind(name);
            int chunks =
                    switch (kind.chunks()) {
                        case ONE -> 1;
                        case TWO -> 2;
                        case ANY -> work.chunks();
                    };
            List<Integer> lengths = kind.sliced() ? work.sliceLengths() : List.of(1);
            try {
                rows.add(row(name, work, chunks, lengths));
            } catch (IllegalArgumentException e) {
                refused.add(new Refusal(name, String.valueOf(e.getMessage())));
            }
        }
        rows.sort(Comparator.comparingDouble(Row::makespan));
        return new FamilyComparison(rows, refused);
    }

    private static Row row(String kind, Work work, int chunks, List<Integer> lengths) {
        var shape = new PipelineShape(work.ranks(), chunks, work.microBatches(), lengths);
        var costs = new PartCosts(work, shape);
        GenerateOptions options =
                GenerateOptions.defaults()
                        .withCosts(Collections.nCopies(work.ranks(), costs.ofSmallestPart()));
        Schedule order = Generators.generate(kind, shape, options);
        Schedule lowered = Lowering.lower(order, work.lowering());
        ScheduleValidator.validate(lowered, Conditions.training().with(InFlight.auto(lowered)))
                .orThrow();
        BubbleReport bubble = ScheduleSimulator.simulate(lowered, costs).bubble();
        double all = (double) bubble.makespanNanos() * work.ranks();
        long inSpan =
                bubble.ranks().stream().mapToLong(BubbleReport.RankTime::idleInSpanNanos).sum();
        int peak = MemoryProfile.of(lowered, PassKind.TRAINING).peakUnits();
        int stages = shape.stages();
        return new Row(
                kind,
                chunks,
                shape.slices(),
                (double) bubble.makespanNanos() / SCALE,
                bubble.bubbleShare(),
                inSpan / all,
                (double) peak / (chunks * shape.slices()),
                (double) count(lowered, Op::isSend) / shape.slices() / work.ranks(),
                (double) count(lowered, FamilyComparison::beginsGather) / stages,
                (double) count(lowered, op -> op instanceof Op.ReduceGradients) / stages);
    }

    private static long count(Schedule lowered, Predicate<Op> counted) {
        return lowered.programs().stream()
                .mapToLong(program -> program.ops().stream().filter(counted).count())
                .sum();
    }

    /** Whether it gathers a stage, or the first of its layers. */
    private static boolean beginsGather(Op op) {
        return op instanceof Op.GatherParameters(_, LayerRange layers) && layers.first() == 0;
    }

    /** Costs of a rank's whole work, divided among its chunks and slices. */
    private record PartCosts(Work work, PipelineShape shape) implements CostModel {
        private OpCosts whole() {
            return work.costs();
        }

        @Override
        public long backgroundNanos(int rank, Op op) {
            if (op instanceof Op.ReduceGradients) {
                return SCALE * work.reduceNanos() / shape.chunks();
            }
            int layers =
                    work.lowering()
                            .gathers()
                            .map(GatherSettings::layers)
                            .orElse(OptionalInt.empty())
                            .orElse(1);
            return SCALE * work.gatherNanos() / shape.chunks() / layers;
        }

        @Override
        public long nanos(int rank, int position, Op op) {
            return switch (op) {
                case Op.Forward(WorkUnit u) -> part(whole().forwardNanos(), u);
                case Op.Recompute(WorkUnit u) -> part(whole().forwardNanos(), u);
                case Op.Backward(WorkUnit u) ->
                        part(whole().backwardInputNanos() + whole().backwardWeightNanos(), u);
                case Op.BackwardInput(WorkUnit u) -> part(whole().backwardInputNanos(), u);
                case Op.BackwardWeight(WorkUnit u) -> part(whole().backwardWeightNanos(), u);
                case Op.Overlapped(Op.Forward f, Op.Compute p) ->
                        nanos(rank, position, f) + nanos(rank, position, p);
                case Op.Transfer _, Op.ActivationOp _, Op.ParameterOp _, Op.ReduceGradients _ -> 0;
            };
        }

        @Override
        public long latencyNanos(Channel channel) {
            return SCALE * whole().communicationNanos();
        }

        OpCosts ofSmallestPart() {
            var first = new WorkUnit(0, 0, 0);
            return new OpCosts(
                    part(whole().forwardNanos(), first),
                    part(whole().backwardInputNanos(), first),
                    part(whole().backwardWeightNanos(), first),
                    SCALE * whole().communicationNanos());
        }

        private long part(long cost, WorkUnit unit) {
            long tokens = shape.sliceLengths().stream().mapToLong(Integer::longValue).sum();
            return SCALE * cost / shape.chunks() * shape.sliceLengths().get(unit.slice()) / tokens;
        }
    }
}
