package dev.penstock.actors.supervisor;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class EvaluationTest {
    @Test
    void aSmallerLastBatchCountsForAsManyTokensAsItHas() {
        var evaluation = new Evaluation(3, 0.25);
        evaluation.add(2);
        evaluation.add(4);
        assertThat(evaluation.isComplete()).isFalse();
        evaluation.add(8);

        assertThat(evaluation.isComplete()).isTrue();
        assertThat(evaluation.meanLoss()).isEqualTo((2 + 4 + 0.25 * 8) / 2.25);
    }
}
