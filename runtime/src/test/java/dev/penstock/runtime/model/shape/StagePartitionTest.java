package dev.penstock.runtime.model.shape;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class StagePartitionTest {
    private static final ModelShape GPT2 = ModelShape.gpt2(50257, 1024, 768, 12, 12, true);

    @Test
    void theHeadOfGpt2WeighsAsMuchAsFiveLayers() {
        assertThat((double) GPT2.headFlopsPerToken() / GPT2.layerFlopsPerToken(0))
                .isBetween(4.5, 5.2);
        assertThat(StagePartition.byFlops(GPT2, 2).layersPerStage()).containsExactly(8, 4);
    }

    @ParameterizedTest
    @CsvSource({"1", "2", "3", "4", "5", "6"})
    void noOtherPartitionHasACheaperBusiestStage(int stages) {
        ModelShape shape = ModelShape.gpt2(3000, 64, 96, 9, 3, true);

        StagePartition found = StagePartition.byFlops(shape, stages);

        assertThat(found.layers()).isEqualTo(9);
        long best =
                everyPartition(9, stages).stream()
                        .mapToLong(p -> busiest(shape, new StagePartition(p)))
                        .min()
                        .orElseThrow();
        assertThat(busiest(shape, found)).isEqualTo(best);
    }

    @ParameterizedTest
    @CsvSource({"2", "3", "4", "5"})
    void noOtherPartitionIsFasterOnStagesOfUnequalSpeeds(int stages) {
        ModelShape shape = ModelShape.gpt2(3000, 64, 96, 9, 3, true);
        var parts = new TrainedParts(shape, FineTuning.FULL);
        double[] speeds = {1, 0.3, 2.5, 0.8, 1.7};
        double[] some = Arrays.copyOf(speeds, stages);

        StagePartition found = StagePartition.bySpeed(parts, some);

        assertThat(found.layers()).isEqualTo(9);
        double best =
                everyPartition(9, stages).stream()
                        .mapToDouble(p -> slowest(parts, some, new StagePartition(p)))
                        .min()
                        .orElseThrow();
        assertThat(slowest(parts, some, found)).isEqualTo(best);
    }

    @ParameterizedTest
    @CsvSource({"2", "3", "4"})
    void stagesHoldNoMoreThanTheyHaveRoomFor(int stages) {
        var parts = new TrainedParts(ModelShape.gpt2(2, 2, 96, 9, 3, true), FineTuning.FULL);
        double[] some = Arrays.copyOf(new double[] {2.5, 0.3, 1, 0.8}, stages);
        List<Integer> most = List.of(3, 6, 2, 4).subList(0, stages);

        StagePartition found = StagePartition.bySpeed(parts, some, most).orElseThrow();

        double best =
                everyPartition(9, stages).stream()
                        .filter(p -> isWithin(p, most))
                        .mapToDouble(p -> slowest(parts, some, new StagePartition(p)))
                        .min()
                        .orElseThrow();
        assertThat(isWithin(found.layersPerStage(), most)).isTrue();
        assertThat(slowest(parts, some, found)).isEqualTo(best);
        assertThat(StagePartition.bySpeed(parts, some, Collections.nCopies(stages, 2)))
                .as("%d stages of 2 layers hold no 9", stages)
                .isEmpty();
    }

    private static boolean isWithin(List<Integer> layers, List<Integer> most) {
        return IntStream.range(0, layers.size()).allMatch(s -> layers.get(s) <= most.get(s));
    }

    private static double slowest(TrainedParts parts, double[] speeds, StagePartition partition) {
        double most = 0;
        for (int stage = 0; stage < speeds.length; stage++) {
            double flops = partition.flopsPerToken(parts.shape(), stage);
            most = Math.max(most, flops / speeds[stage]);
        }
        return most;
    }

    /** Attention to two tokens, the head of two rows and the embedding cost next to nothing. */
    @ParameterizedTest
    @CsvSource({"2", "3", "4", "5"})
    void frozenBlocksCountWhatTheyComputeAlone(int stages) {
        ModelShape shape = ModelShape.gpt2(2, 2, 96, 10, 3, true);
        List<String> freeze = new ArrayList<>(List.of("w*", "ln_f.*"));
        for (int layer : List.of(0, 1, 2, 3, 6, 9)) {
            freeze.add("h." + layer + ".*");
        }
        var parts = new TrainedParts(shape, new FineTuning(Optional.empty(), freeze));
        // forward alone, then all, or forward and the backward for the input
        double[] costs = {1, 1, 1, 1, 3, 3, 2, 3, 3, 2};

        StagePartition found = StagePartition.byFlops(parts, stages);

        double best =
                everyPartition(10, stages).stream()
                        .mapToDouble(p -> busiest(costs, p))
                        .min()
                        .orElseThrow();
        assertThat(busiest(costs, found.layersPerStage())).isEqualTo(best);
        assertThat(busiest(costs, StagePartition.byFlops(shape, stages).layersPerStage()))
                .isGreaterThan(best);
    }

    private static double busiest(double[] costs, List<Integer> partition) {
        double most = 0;
        int layer = 0;
        for (int count : partition) {
            double sum = 0;
            for (int i = 0; i < count; i++) {
                sum += costs[layer++];
            }
            most = Math.max(most, sum);
        }
        return most;
    }

    /** Forward and the backward for the input of what lies behind the lowest adapter. */
    @Test
    void adaptersCostLittleAndEndTheBackwardWhereTheyStand() {
        ModelShape shape = ModelShape.gpt2(3000, 64, 96, 4, 3, true);
        var adapters = new Adapters(2, 4, 0, List.of(new AdapterPlace("mlp.c_fc", "", 0, 4 * 96)));
        var flops =
                new TrainedFlops(
                        new TrainedParts(
                                shape, new FineTuning(Optional.of(adapters), List.of("h.0.*"))));
        long product = 2L * 96 * 96;
        long attention = shape.layerFlopsPerToken(0) - 36L * product;
        long own = 6L * 2 * 5 * 96;

        assertThat(flops.perToken(0, 1)).isEqualTo(12 * product + attention / 3 + own / 3);
        assertThat(flops.perToken(1, 1)).isEqualTo(16 * product + attention / 3 + own);
        assertThat(flops.perToken(2, 2)).isEqualTo(2 * (24 * product + attention + own));
        assertThat(flops.head()).isEqualTo(2L * 2 * 3000 * 96);
    }

    @Test
    void ofAModelThatIsAllTrainedNothingIsLeftOut() {
        for (boolean tied : List.of(false, true)) {
            ModelShape shape = ModelShape.gpt2(3000, 64, 96, 9, 3, tied);
            var flops = new TrainedFlops(new TrainedParts(shape, FineTuning.FULL));

            assertThat(flops.perToken(2, 5)).isEqualTo(5 * shape.layerFlopsPerToken(0));
            assertThat(flops.head()).isEqualTo(shape.headFlopsPerToken());
            assertThat(flops.embedding()).isEqualTo(shape.embeddingFlopsPerToken());
        }
    }

    @Test
    void equalsAreSpreadEvenly() {
        ModelShape smallHead = ModelShape.gpt2(2, 64, 96, 10, 3, true);

        assertThat(StagePartition.byFlops(smallHead, 4).layersPerStage())
                .containsExactlyInAnyOrder(3, 3, 2, 2);
    }

    @Test
    void withMoreStagesThanLayersTheHeadStandsAloneThenTheEmbedding() {
        ModelShape two = ModelShape.gpt2(64, 16, 32, 2, 4, true);

        assertThat(StagePartition.byFlops(two, 3).layersPerStage()).containsExactly(1, 1, 0);
        assertThat(StagePartition.byFlops(two, 4).layersPerStage()).containsExactly(0, 1, 1, 0);
        assertThatThrownBy(() -> StagePartition.byFlops(two, 5))
                .hasMessage(
                        "2 layers can fill 1 to 4 stages, got 5; try fewer stages or more layers");
    }

    @Test
    void rolesTellWhatAStageHolds() {
        StagePartition partition = new StagePartition(List.of(2, 3, 1));

        assertThat(partition.role(0)).isEqualTo(new StageRole(0, 0, 2, true, false, 0, 1));
        assertThat(partition.role(1)).isEqualTo(new StageRole(1, 2, 3, false, false, 0, 1));
        assertThat(partition.role(2)).isEqualTo(new StageRole(2, 5, 1, false, true, 0, 1));
    }

    @Test
    void partitionsThatCannotBeAreRefused() {
        assertThatThrownBy(() -> StagePartition.given(GPT2, List.of(6, 5)))
                .hasMessage("the partition [6, 5] holds 11 layers, but the model has 12");
        assertThatThrownBy(() -> new StagePartition(List.of(6, 0, 6)))
                .hasMessage("stage 1 needs at least 1 layers, got [6, 0, 6]");
        assertThatThrownBy(() -> new StagePartition(List.of(0)))
                .hasMessageContaining("stage 0 needs at least 1");
    }

    @Test
    void parametersAddUpToGpt2s() {
        assertThat(GPT2.parameters()).isEqualTo(124_439_808L);
        assertThat(ModelShape.gpt2(50257, 1024, 768, 12, 12, false).parameters())
                .isEqualTo(124_439_808L + 50257L * 768);
    }

    private static long busiest(ModelShape shape, StagePartition partition) {
        long most = 0;
        for (int stage = 0; stage < partition.stages(); stage++) {
            most = Math.max(most, partition.flopsPerToken(shape, stage));
        }
        return most;
    }

    private static List<List<Integer>> everyPartition(int layers, int stages) {
        if (stages == 1) {
            return List.of(List.of(layers));
        }
        List<List<Integer>> all = new ArrayList<>();
        for (int first = 1; first <= layers - stages + 1; first++) {
            for (List<Integer> rest : everyPartition(layers - first, stages - 1)) {
                List<Integer> partition = new ArrayList<>(List.of(first));
                partition.addAll(rest);
                all.add(partition);
            }
        }
        return all;
    }
}
