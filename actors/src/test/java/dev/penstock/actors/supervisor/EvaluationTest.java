package dev.penstock.actors.supervisor;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;

class EvaluationTest {
    @Test
    void aSmallerLastBatchCountsForAsManyTokensAsItHas() {
        var evaluation = new Evaluation(3, List.of(0.25));
        evaluation.add(2);
        evaluation.add(4);
        assertThat(evaluation.isComplete()).isFalse();
        evaluation.add(8);

        assertThat(evaluation.isComplete()).isTrue();
        assertThat(evaluation.meanLoss()).isEqualTo((2 + 4 + 0.25 * 8) / 2.25);
    }

    @Test
    void aBatchOfWhichNothingCountsHasNoShareInTheMean() {
        var evaluation = new Evaluation(4, List.of(0.0, 0.5, 0.25));
        evaluation.add(2);
        evaluation.add(0);
        evaluation.add(4);
        evaluation.add(8);

        assertThat(evaluation.isComplete()).isTrue();
        assertThat(evaluation.meanLoss()).isEqualTo((2 + 0.5 * 4 + 0.25 * 8) / 1.75);
    }
}
