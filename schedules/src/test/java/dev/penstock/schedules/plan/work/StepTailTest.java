package dev.penstock.schedules.plan.work;

import static dev.penstock.schedules.plan.CountingHardware.BLOCK_PARAMETERS;
import static dev.penstock.schedules.plan.CountingHardware.EMBEDDING_PARAMETERS;
import static dev.penstock.schedules.plan.CountingHardware.HEAD_PARAMETERS;
import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.plan.CountingHardware;
import java.util.List;
import java.util.function.LongUnaryOperator;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

/** By hand: 3 ranks with 1, 2 and 1 blocks, each on 4 replicas that are 2 ns a byte apart. */
class StepTailTest {
    private static final List<Integer> PARTITION = List.of(1, 2, 1);
    private static final long[] PARAMETERS = {
        BLOCK_PARAMETERS + EMBEDDING_PARAMETERS,
        2 * BLOCK_PARAMETERS,
        BLOCK_PARAMETERS + HEAD_PARAMETERS
    };

    /**
     * The first and the last rank sum 310 gradients of 4 bytes: an all-reduce of two, 2 x 1/2 of
     * all.
     */
    private static final long TIED = 2 * (310 * 4 / 2 * 2 + 7);

    /** One stage on a rank: its reduction begins when nothing is left to compute. */
    private static long[] tails(ZeroStage zero) {
        PipelineWork work =
                CountingHardware.work(CountingHardware.cluster(12, 1), new Layout(3, 1, 4));
        Placement placement = Placement.loop(3, 1);
        return StepTail.least(
                placement,
                StepTail.reductions(work, PARTITION, placement, zero),
                StepTail.nanos(work, PARTITION, placement, zero));
    }

    /** Three quarters of the bytes go out; four replicas are two rounds apart. */
    private static long oneWay(long bytes) {
        return bytes * 3 / 4 * 2 + 2 * 7;
    }

    private static long[] expected(LongUnaryOperator ofParameters) {
        long[] tails = LongStream.of(PARAMETERS).map(ofParameters).toArray();
        tails[0] += TIED;
        tails[2] += TIED;
        return tails;
    }

    /** Moments and weights are read and written, gradients read: (2 x 12 + 2 x 2 + 4) bytes. */
    @Test
    void plainReplicasReduceAllGradientsAndStepAllParameters() {
        assertThat(tails(ZeroStage.NONE)).isEqualTo(expected(p -> 2 * oneWay(4 * p) + 32 * p));
    }

    @Test
    void dividedOptimizersScatterGradientsStepTheirPartAndGatherParameters() {
        assertThat(tails(ZeroStage.OPTIMIZER))
                .isEqualTo(expected(p -> oneWay(4 * p) + oneWay(2 * p) + 32 * p / 4));
    }

    @Test
    void dividedGradientsWereScatteredBefore() {
        assertThat(tails(ZeroStage.GRADIENTS)).isEqualTo(expected(p -> oneWay(2 * p) + 32 * p / 4));
    }

    @Test
    void dividedParametersAreGatheredForUse() {
        assertThat(tails(ZeroStage.PARAMETERS)).isEqualTo(expected(p -> 32 * p / 4));
    }

    @Test
    void oneReplicaReducesNothing() {
        PipelineWork work =
                CountingHardware.work(CountingHardware.cluster(3, 1), new Layout(3, 1, 1));

        assertThat(StepTail.nanos(work, PARTITION, Placement.loop(3, 1), ZeroStage.NONE))
                .isEqualTo(expected(p -> 32 * p));
    }

    /** Two shards in a node: half of everything for each, on half of the network. */
    @Test
    void shardsSumTheirPartsOfTheTiedMatrix() {
        PipelineWork work =
                CountingHardware.work(CountingHardware.cluster(3, 2), new Layout(3, 2, 1));
        long half = 2 * (155 * 4 / 2 * 4 + 7);

        long[] tails = StepTail.nanos(work, PARTITION, Placement.loop(3, 1), ZeroStage.NONE);

        assertThat(tails)
                .containsExactly(
                        32 * PARAMETERS[0] / 2 + half,
                        32 * PARAMETERS[1] / 2,
                        32 * PARAMETERS[2] / 2 + half);
    }

    /** In V shape rank 0 holds the first and the last stage, so there is nothing to sum. */
    @Test
    void aRankStepsAllItsStages() {
        PipelineWork work =
                CountingHardware.work(CountingHardware.cluster(2, 1), new Layout(2, 1, 1));

        long[] tails = StepTail.nanos(work, List.of(1, 1, 1, 1), Placement.v(2), ZeroStage.NONE);

        assertThat(tails).containsExactly(32 * (PARAMETERS[0] + PARAMETERS[2]), 32 * PARAMETERS[1]);
    }

    @Test
    void anUntiedHeadIsNotSummed() {
        ModelShape untied = new ModelShape(4, 10, 2, 31, 20, false);
        var layout = new Layout(3, 1, 1);
        Hardware cluster = CountingHardware.cluster(3, 1);
        PipelineWork work =
                PipelineWork.of(
                        new PlanRequest(untied, CountingHardware.BYTES, cluster, 1),
                        LayoutHardware.of(cluster, layout),
                        1,
                        List.of(20),
                        false);

        assertThat(StepTail.nanos(work, PARTITION, Placement.loop(3, 1), ZeroStage.NONE))
                .isEqualTo(LongStream.of(PARAMETERS).map(p -> 32 * p).toArray());
    }
}
