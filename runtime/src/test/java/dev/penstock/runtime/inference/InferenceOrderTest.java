package dev.penstock.runtime.inference;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.model.generation.Sampling;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.schedules.ir.OpText;
import dev.penstock.schedules.ir.Schedule;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;

class InferenceOrderTest {
    @Test
    void theSlicesOfAllTextsComeBeforeTheNextSliceOfAny() {
        Schedule order = order(2, List.of(new int[3], new int[5]), 2);

        assertThat(ops(order, 0))
                .isEqualTo("0F0s0 0SEND_F0s0 0F1s0 0SEND_F1s0 0F0s1 0SEND_F0s1 0F1s1 0SEND_F1s1");
        assertThat(ops(order, 1))
                .isEqualTo("1RECV_F0s0 1F0s0 1RECV_F1s0 1F1s0 1RECV_F0s1 1F0s1 1RECV_F1s1 1F1s1");
        assertThat(order.shape().sliceLengths()).containsExactly(5, 1);
    }

    @Test
    void textsAreFedTogetherWhereNoStageHasToWaitForIt() {
        Schedule order = order(1, List.of(new int[3], new int[5], new int[9]), 2);

        assertThat(ops(order, 0)).isEqualTo("0F0s0 0F0s1 0F0s2");
        assertThat(order.shape().sliceLengths()).containsExactly(3 + 5 + 8, 1 + 1 + 1, 1);
        assertThat(order(2, Collections.nCopies(5, new int[3]), 2).shape().sliceLengths())
                .containsExactly(9, 3);
        assertThat(order(1, Collections.nCopies(40, new int[3]), 2).shape().microBatches())
                .isEqualTo(3);
    }

    @Test
    void theJudgeAcceptsItForAnyNumberOfStagesAndTexts() {
        for (int stages = 1; stages <= 5; stages++) {
            for (int texts = 1; texts <= 4; texts++) {
                Schedule order = order(stages, Collections.nCopies(texts, new int[9]), 40);

                assertThat(order.programs()).hasSize(stages);
                assertThat(order.shape().microBatches()).isEqualTo(Math.min(stages, texts));
            }
        }
    }

    private static Schedule order(int stages, List<int[]> prompts, int count) {
        var request = InferenceRequest.of(prompts, count, Sampling.greedy());
        return InferenceOrder.of(
                stages,
                new Texts(
                        request, stages, ModelShape.gpt2(9, 32, 4, 1, 1, true), 8, (_, _) -> true));
    }

    private static String ops(Schedule order, int rank) {
        return String.join(
                " ",
                order.program(rank).ops().stream()
                        .map(op -> OpText.print(op, order.shape()))
                        .toList());
    }
}
