package dev.penstock.runtime.model.shape;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class StagePartitionTest {
    private static final ModelShape GPT2 = ModelShape.gpt2(50257, 1024, 768, 12, 12, true);

    @Test
    void theHeadOfGpt2WeighsAsMuchAsFiveLayers() {
        assertThat((double) GPT2.headFlopsPerToken() / GPT2.layerFlopsPerToken())
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

        assertThat(partition.role(0)).isEqualTo(new StageRole(0, 0, 2, true, false, 0));
        assertThat(partition.role(1)).isEqualTo(new StageRole(1, 2, 3, false, false, 0));
        assertThat(partition.role(2)).isEqualTo(new StageRole(2, 5, 1, false, true, 0));
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
