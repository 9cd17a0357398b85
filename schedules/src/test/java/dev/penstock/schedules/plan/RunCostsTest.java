package dev.penstock.schedules.plan;

import static dev.penstock.schedules.plan.CountingHardware.BLOCK_PARAMETERS;
import static dev.penstock.schedules.plan.CountingHardware.EMBEDDING_PARAMETERS;
import static dev.penstock.schedules.plan.CountingHardware.HEAD_PARAMETERS;
import static dev.penstock.schedules.plan.CountingHardware.blockForward;
import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.ir.Channel;
import dev.penstock.schedules.ir.LayerRange;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;
import dev.penstock.schedules.lower.GatherSettings;
import dev.penstock.schedules.lower.GradientReduction;
import dev.penstock.schedules.lower.Lowering;
import dev.penstock.schedules.lower.LoweringOptions;
import dev.penstock.schedules.lower.ParameterResidency;
import dev.penstock.schedules.plan.work.Hardware;
import dev.penstock.schedules.plan.work.HardwareCosts;
import dev.penstock.schedules.plan.work.Layout;
import dev.penstock.schedules.plan.work.Link;
import dev.penstock.schedules.plan.work.OuterExchange;
import dev.penstock.schedules.plan.work.PlanChoice;
import dev.penstock.schedules.plan.work.PlanRequest;
import dev.penstock.schedules.plan.work.ZeroStage;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

/**
 * By hand: 3 ranks with 1, 2 and 1 blocks, each on 4 replicas that are so slow that a gather takes
 * longer than a computation.
 */
class RunCostsTest {
    private static final int BYTE_NANOS = 64;
    private static final Hardware SLOW =
            new Hardware(
                    "slow",
                    CountingHardware.cluster(12, 1).groups(),
                    new Link(7, 1e9 / BYTE_NANOS));
    private static final List<Integer> PARTITION = List.of(1, 2, 1);
    private static final WorkUnit UNIT = new WorkUnit(1, 0, 0);
    private static final LoweringOptions PLAIN = LoweringOptions.plain();

    private static Schedule order(LoweringOptions options) {
        var shape = new PipelineShape(3, 1, 4, List.of(20));
        return Lowering.lower(Generators.generate("gpipe", shape), options);
    }

    private static HardwareCosts costs(ZeroStage zero, Schedule order, Set<Integer> rerun) {
        var choice =
                new PlanChoice(new Layout(3, 1, 4), zero, order.name(), 1, 4, List.of(20), false);
        return HardwareCosts.ofRun(
                CountingHardware.request(SLOW, 16), choice, PARTITION, order, rerun, 1);
    }

    /** Three quarters of the bytes go out; four replicas are two rounds apart. */
    private static long oneWay(long bytes) {
        return bytes * 3 / 4 * BYTE_NANOS + 2 * 7;
    }

    /** Everything that runs beside computations on the second rank, with two blocks. */
    private static long beside(HardwareCosts costs, Schedule order) {
        RankProgram program = order.program(1);
        return program.ops().stream().mapToLong(op -> costs.backgroundNanos(1, op)).sum();
    }

    @Test
    void gathersCostAsOftenAsTheOrderHasThem() {
        long gather = oneWay(2 * BLOCK_PARAMETERS * 2);
        long sum = oneWay(2 * BLOCK_PARAMETERS * 4);
        for (ParameterResidency stay :
                List.of(ParameterResidency.PER_STEP, ParameterResidency.PER_MICRO_BATCH)) {
            Schedule order =
                    order(
                            PLAIN.withReduction(GradientReduction.PER_STEP)
                                    .withGathers(new GatherSettings(stay, 1)));
            HardwareCosts costs = costs(ZeroStage.PARAMETERS, order, Set.of());

            // GPipe: four micro-batches forward, then four backward
            int gathers = stay == ParameterResidency.PER_STEP ? 1 : 8;
            assertThat(beside(costs, order)).isEqualTo(gathers * gather + sum);
            assertThat(costs.nanos(1, 0, new Op.Forward(UNIT)))
                    .isEqualTo(2 * blockForward(20, 10.5))
                    .isLessThan(gather);
            assertThat(costs.nanos(1, 0, new Op.Backward(UNIT))).isLessThan(sum);
        }
    }

    @Test
    void computationsGatherWhatTheOrderDoesNot() {
        Schedule order = order(PLAIN.withReduction(GradientReduction.PER_MICRO_BATCH));
        HardwareCosts costs = costs(ZeroStage.PARAMETERS, order, Set.of());

        assertThat(costs.nanos(1, 0, new Op.Forward(UNIT)))
                .isEqualTo(oneWay(2 * BLOCK_PARAMETERS * 2));
        assertThat(beside(costs, order)).isEqualTo(4 * oneWay(2 * BLOCK_PARAMETERS * 4));
    }

    @Test
    void stagesThatDivideTheirOptimizerGatherWhatItMade() {
        Schedule order =
                order(
                        PLAIN.withReduction(GradientReduction.PER_STEP)
                                .withGathers(new GatherSettings(ParameterResidency.PER_STEP, 0)));

        assertThat(beside(costs(ZeroStage.OPTIMIZER, order, Set.of()), order))
                .isEqualTo(oneWay(2 * BLOCK_PARAMETERS * 2) + oneWay(2 * BLOCK_PARAMETERS * 4));
    }

    @Test
    void someLayersAreTheirPartOfAGather() {
        HardwareCosts costs = costs(ZeroStage.NONE, order(PLAIN), Set.of());

        assertThat(costs.backgroundNanos(1, new Op.GatherParameters(1, new LayerRange(1, 1))))
                .isEqualTo(oneWay(2 * BLOCK_PARAMETERS * 2) / 2);
        assertThat(costs.backgroundNanos(0, new Op.GatherParameters(0, LayerRange.ALL)))
                .isEqualTo(oneWay((BLOCK_PARAMETERS + EMBEDDING_PARAMETERS) * 2));
    }

    /** Blocks 0 | 1 2 | 3: even ones, tables and the tied matrix in turn with the others. */
    @Test
    void replicasApartExchangeAFragmentAtATime() {
        Schedule order = order(PLAIN.withReduction(GradientReduction.PER_STEP));
        var choice =
                new PlanChoice(
                        new Layout(3, 1, 4), ZeroStage.NONE, "gpipe", 1, 4, List.of(20), false);
        PlanRequest request = CountingHardware.request(SLOW, 16);
        long matrix = 31 * 10;

        assertThat(beside(costs(ZeroStage.NONE, order, Set.of()).apart(), order)).isZero();
        assertThat(
                        new OuterExchange(2, 4, false)
                                .nanos(request, choice, PARTITION, order.placement()))
                .isDeepEqualTo(
                        new long[][] {
                            {
                                2 * oneWay((BLOCK_PARAMETERS + EMBEDDING_PARAMETERS) * 4),
                                2 * oneWay(BLOCK_PARAMETERS * 4),
                                2 * oneWay(matrix * 4)
                            },
                            {
                                0,
                                2 * oneWay(BLOCK_PARAMETERS * 4),
                                2 * oneWay((BLOCK_PARAMETERS + HEAD_PARAMETERS - matrix) * 4)
                            }
                        });
        // a byte of each parameter from each of four
        assertThat(
                        new OuterExchange(1, 1, true)
                                .nanos(request, choice, PARTITION, order.placement())[0])
                .containsExactly(
                        oneWay((BLOCK_PARAMETERS + EMBEDDING_PARAMETERS) * 4),
                        oneWay(2 * BLOCK_PARAMETERS * 4),
                        oneWay((BLOCK_PARAMETERS + HEAD_PARAMETERS) * 4));
    }

    @Test
    void blocksThatRunAgainTakeAForwardMoreInTheBackward() {
        Schedule order = order(PLAIN);
        HardwareCosts kept = costs(ZeroStage.NONE, order, Set.of());
        HardwareCosts rerun = costs(ZeroStage.NONE, order, Set.of(0, 2));
        for (Op op : List.of(new Op.Backward(UNIT), new Op.BackwardInput(UNIT))) {
            assertThat(rerun.nanos(1, 0, op) - kept.nanos(1, 0, op))
                    .isEqualTo(blockForward(20, 10.5));
        }
        assertThat(rerun.nanos(1, 0, new Op.Forward(UNIT)))
                .isEqualTo(kept.nanos(1, 0, new Op.Forward(UNIT)));
    }

    /** As plans have it, or with whole boundary tensors from every shard. */
    @Test
    void shardsSendTheirPartsOrAll() {
        var choice =
                new PlanChoice(
                        new Layout(2, 2, 1), ZeroStage.NONE, "gpipe", 1, 1, List.of(20), false);
        var shape = new PipelineShape(2, 1, 1, List.of(20));
        Schedule order = Lowering.lower(Generators.generate("gpipe", shape), PLAIN);
        PlanRequest request = CountingHardware.request(CountingHardware.cluster(2, 2), 1);
        List<Integer> partition = List.of(2, 2);
        var channel = new Channel(0, 1);

        assertThat(
                        HardwareCosts.of(request, choice, partition, order.placement())
                                .bytes(channel, UNIT))
                .isEqualTo(20 * 10 * 3 / 2);
        for (int parts = 1; parts <= 2; parts++) {
            assertThat(
                            HardwareCosts.ofRun(request, choice, partition, order, Set.of(), parts)
                                    .bytes(channel, UNIT))
                    .isEqualTo(20 * 10 * 3 / parts);
            assertThat(
                            HardwareCosts.ofRun(request, choice, partition, order, Set.of(), parts)
                                    .coded(coded -> coded.toStage() == 1 ? 7 : 0)
                                    .bytes(channel, UNIT))
                    .isEqualTo(20L / parts * 7);
        }
    }

    /** Two nodes of two: stages 0 and 1 are on both, stages 1 and 2 too, and so are 2 and 3. */
    @Test
    void stagesThatAreNotOnNeighboursAreAsFarApartAsTheirRanks() {
        HardwareCosts costs =
                HardwareCosts.of(
                        CountingHardware.request(CountingHardware.cluster(2, 2), 1),
                        new PlanChoice(
                                new Layout(4, 1, 1),
                                ZeroStage.NONE,
                                "own",
                                1,
                                1,
                                List.of(20),
                                false),
                        List.of(1, 1, 1, 1),
                        new Placement(List.of(0, 2, 1, 3)));
        for (int stage = 0; stage < 3; stage++) {
            assertThat(costs.latencyNanos(new Channel(stage, stage + 1))).isEqualTo(7);
            assertThat(costs.latencyNanos(new Channel(stage + 1, stage))).isEqualTo(7);
        }
    }
}
