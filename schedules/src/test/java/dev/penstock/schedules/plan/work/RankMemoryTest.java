package dev.penstock.schedules.plan.work;

import static dev.penstock.schedules.plan.CountingHardware.BLOCK_PARAMETERS;
import static dev.penstock.schedules.plan.CountingHardware.EMBEDDING_PARAMETERS;
import static dev.penstock.schedules.plan.CountingHardware.HEAD_PARAMETERS;
import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.plan.CountingHardware;
import dev.penstock.schedules.plan.Cut;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** By hand: p, g, o and activations of 2, 4, 12 and 3 bytes, width 10, 31 words, 20 tokens. */
class RankMemoryTest {
    /** One tensor of 20 tokens. */
    private static final long TENSOR = 20 * 10 * 3;

    /** Two each way. */
    private static final long TRANSFERS = 4 * TENSOR;

    /** fp32, with their gradient in place. */
    private static final long LOGITS = 4 * 20 * 31;

    private static PipelineWork work(Layout layout, List<Integer> slices, boolean recompute) {
        Hardware cluster = CountingHardware.cluster(layout.devices(), layout.tensor());
        return PipelineWork.of(
                CountingHardware.request(cluster, 2 * layout.data()),
                LayoutHardware.of(cluster, layout),
                1,
                slices,
                recompute);
    }

    private static RankMemory memory(PipelineWork work, ZeroStage zero, int rank) {
        return RankMemory.of(work, List.of(1, 2, 1), Placement.loop(3, 1), zero, rank, 500);
    }

    @Test
    void aRankHoldsItsStateItsUnitsAndTensorsOnTheirWay() {
        PipelineWork work = work(new Layout(3, 1, 1), List.of(20), false);

        assertThat(memory(work, ZeroStage.NONE, 0))
                .isEqualTo(
                        new RankMemory(
                                0,
                                18 * (BLOCK_PARAMETERS + EMBEDDING_PARAMETERS),
                                500,
                                TRANSFERS,
                                1L << 30));
        assertThat(memory(work, ZeroStage.NONE, 1).state()).isEqualTo(18 * 2 * BLOCK_PARAMETERS);
        assertThat(memory(work, ZeroStage.NONE, 2))
                .isEqualTo(
                        new RankMemory(
                                2,
                                18 * (BLOCK_PARAMETERS + HEAD_PARAMETERS),
                                500,
                                LOGITS + TRANSFERS,
                                1L << 30));
    }

    @Test
    void whatIsMissingIsAllThatIsNeededLessWhatThereIs() {
        var memory = new RankMemory(3, 100, 20, 7, 120);

        assertThat(memory.bytes()).isEqualTo(127);
        assertThat(memory.excess()).isEqualTo(7);
    }

    /** The block in use and the next; the words' matrix is smaller. */
    @Test
    void dividedParametersAndGradientsNeedRoomToBeWhole() {
        PipelineWork work = work(new Layout(3, 1, 4), List.of(20), false);

        assertThat(memory(work, ZeroStage.OPTIMIZER, 1).working()).isEqualTo(TRANSFERS);
        assertThat(memory(work, ZeroStage.GRADIENTS, 1).working())
                .isEqualTo(4 * BLOCK_PARAMETERS + TRANSFERS);
        assertThat(memory(work, ZeroStage.PARAMETERS, 1).working())
                .isEqualTo(2 * 2 * BLOCK_PARAMETERS + 4 * BLOCK_PARAMETERS + TRANSFERS);
        assertThat(memory(work, ZeroStage.PARAMETERS, 1).state())
                .isEqualTo(18 * 2 * BLOCK_PARAMETERS / 4);
    }

    @Test
    void aStageWithoutBlocksGathersTheWordsMatrixAlone() {
        PipelineWork work = work(new Layout(6, 1, 4), List.of(20), false);
        long matrix = 31 * 10;

        for (boolean first : new boolean[] {true, false}) {
            assertThat(RankMemory.working(work, ZeroStage.PARAMETERS, 0, 0, first, !first))
                    .isEqualTo(2 * matrix + 4 * matrix + (first ? 0 : LOGITS) + TRANSFERS);
        }
        assertThat(RankMemory.working(work, ZeroStage.PARAMETERS, 0, 0, false, false))
                .isEqualTo(TRANSFERS);
    }

    /** A block that is computed again keeps 17 tensors; its units keep one each. */
    @Test
    void recomputationNeedsOneBlocksActivations() {
        PipelineWork kept = work(new Layout(3, 1, 1), List.of(20), false);
        PipelineWork again = work(new Layout(3, 1, 1), List.of(20), true);

        assertThat(memory(again, ZeroStage.NONE, 1).working()).isEqualTo(17 * TENSOR + TRANSFERS);
        assertThat(again.keptBytes(0, 0, 2, false)).isEqualTo(2 * TENSOR);
        assertThat(kept.keptBytes(0, 0, 2, false)).isEqualTo(2 * 17 * TENSOR);
        // the last norm's input
        assertThat(again.keptBytes(0, 0, 2, true)).isEqualTo(2 * TENSOR + TENSOR);
    }

    /** Keys and values of the whole sequence have gradients; the longest slice is in transit. */
    @Test
    void slicesAddToTheGradientsOfTheContext() {
        PipelineWork work = work(new Layout(3, 1, 1), List.of(6, 9, 5), true);
        long token = 10 * 3;

        assertThat(memory(work, ZeroStage.NONE, 1).working())
                .isEqualTo(2 * 2 * TENSOR + 17 * 9 * token + 4 * 9 * token);
        assertThat(work.longestSlice()).isEqualTo(1);
        // keys and values stay for later slices, beside the block's input
        assertThat(work.keptBytes(0, 2, 2, false)).isEqualTo(2 * 3 * 5 * token);
    }

    @Test
    void shardsDivideParametersLogitsAndTransfers() {
        PipelineWork work = work(new Layout(3, 2, 1), List.of(10, 10), true);
        long half = TENSOR / 2;

        assertThat(memory(work, ZeroStage.NONE, 1).state()).isEqualTo(18 * BLOCK_PARAMETERS);
        assertThat(memory(work, ZeroStage.NONE, 2).working())
                .isEqualTo((5 + 12 / 2) * half + LOGITS / 2 / 2 + 2 * TENSOR / 2 + 4 * (half / 2));
        // the input is whole on every shard, keys and values are divided
        assertThat(work.keptBytes(0, 0, 1, false)).isEqualTo(half + 2 * half / 2);
    }

    /** In V shape: the state of both its stages, the working space of the one that needs more. */
    @Test
    void aRankHoldsTheStateOfAllItsStagesAndWorksOnOneAtATime() {
        PipelineWork work = work(new Layout(2, 1, 1), List.of(20), false);

        RankMemory memory =
                RankMemory.of(work, List.of(1, 1, 1, 1), Placement.v(2), ZeroStage.NONE, 0, 0);

        assertThat(memory.state())
                .isEqualTo(18 * (2 * BLOCK_PARAMETERS + EMBEDDING_PARAMETERS + HEAD_PARAMETERS));
        assertThat(memory.working()).isEqualTo(LOGITS + TRANSFERS);
    }

    @Test
    void stagesHaveTheModelsParametersAndTheTiedMatrixTwice() {
        for (boolean tied : new boolean[] {true, false}) {
            var model = new ModelShape(4, 10, 2, 31, 20, tied);
            Hardware cluster = CountingHardware.cluster(3, 1);
            PipelineWork work =
                    PipelineWork.of(
                            new PlanRequest(model, CountingHardware.BYTES, cluster, 1),
                            LayoutHardware.of(cluster, new Layout(3, 1, 1)),
                            1,
                            List.of(20),
                            false);

            long stages =
                    work.stageParameters(0, 1, true, false)
                            + work.stageParameters(1, 2, false, false)
                            + work.stageParameters(2, 1, false, true);

            assertThat(stages).isEqualTo(model.parameters() + (tied ? 310 : 0));
            assertThat(work.stageParameters(0, 4, true, true)).isEqualTo(model.parameters());
        }
    }

    /** Adapters of 6 parameters beside each block of the four; nothing else is trained. */
    @Test
    void onlyWhatIsTrainedHasGradientsOptimizerStateAndProducts() {
        var full = new ModelShape(4, 10, 2, 31, 20, true);
        ModelShape tuned = full.training(new TrainedShape(6, 6, 6, 0, 0, false));
        PipelineWork all = work(full);
        PipelineWork some = work(tuned);

        assertThat(some.stageParameters(0, 4, true, true)).isEqualTo(full.parameters() + 4 * 6);
        assertThat(some.trainedParameters(0, 4, true, true)).isEqualTo(4 * 6);
        assertThat(all.trainedParameters(0, 4, true, true)).isEqualTo(full.parameters());
        TrainingBytes bytes = CountingHardware.BYTES;
        assertThat(RankMemory.state(some, ZeroStage.NONE, 0, 4, true, true))
                .isEqualTo(
                        bytes.parameter() * (full.parameters() + 24)
                                + (bytes.gradient() + bytes.optimizer()) * 24L);
        assertThat(some.stageNanos(0, 4, true, true)).isLessThan(all.stageNanos(0, 4, true, true));
        assertThat(StepTail.sums(some, List.of(2, 1, 1), Placement.loop(3, 1), ZeroStage.NONE))
                .isEqualTo(new long[3]);
    }

    private static PipelineWork work(ModelShape model) {
        Hardware cluster = CountingHardware.cluster(3, 1);
        return PipelineWork.of(
                new PlanRequest(model, CountingHardware.BYTES, cluster, 1),
                LayoutHardware.of(cluster, new Layout(3, 1, 1)),
                1,
                List.of(20),
                false);
    }

    @Test
    void aStageTakesAsLongAsItsOps() {
        PipelineWork work = work(new Layout(3, 1, 1), List.of(6, 9, 5), false);
        List<Integer> partition = List.of(1, 2, 1);
        var times = new StageTimes(work, partition, Placement.loop(3, 1), ZeroStage.NONE);

        for (int stage = 0; stage < 3; stage++) {
            int s = stage;
            long ops =
                    IntStream.range(0, 3)
                            .mapToLong(slice -> times.forward(s, slice) + times.backward(s, slice))
                            .sum();
            assertThat(work.stageNanos(s, partition.get(s), s == 0, s == 2)).isEqualTo(ops);
        }
        var cut = new Cut(work, 1, Placement.loop(3, 1), partition);
        assertThat(cut.longestStageNanos()).isEqualTo(work.stageNanos(1, 2, false, false));
        assertThat(cut.keptBytes(2, 1)).isEqualTo(work.keptBytes(0, 1, 1, true));
        assertThat(cut.keptBytes(1, 0)).isEqualTo(work.keptBytes(0, 0, 2, false));
    }
}
