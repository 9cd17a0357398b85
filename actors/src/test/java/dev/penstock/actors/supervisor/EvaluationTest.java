package dev.penstock.actors.supervisor;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.OptionalDouble;
import org.junit.jupiter.api.Test;

class EvaluationTest {
    @Test
    void aSmallerLastBatchCountsForAsManyTokensAsItHas() {
        var evaluation = new Evaluation(3, List.of(0.25));
        evaluation.add(2, OptionalDouble.empty());
        evaluation.add(4, OptionalDouble.empty());
        assertThat(evaluation.isComplete()).isFalse();
        evaluation.add(8, OptionalDouble.empty());

        assertThat(evaluation.isComplete()).isTrue();
        assertThat(evaluation.meanLoss()).isEqualTo((2 + 4 + 0.25 * 8) / 2.25);
    }

    @Test
    void aBatchOfWhichNothingCountsHasNoShareInTheMean() {
        var evaluation = new Evaluation(4, List.of(0.0, 0.5, 0.25));
        evaluation.add(2, OptionalDouble.empty());
        evaluation.add(0, OptionalDouble.empty());
        evaluation.add(4, OptionalDouble.empty());
        evaluation.add(8, OptionalDouble.empty());

        assertThat(evaluation.isComplete()).isTrue();
        assertThat(evaluation.meanLoss()).isEqualTo((2 + 0.5 * 4 + 0.25 * 8) / 1.75);
    }

    @Test
    void anAccuracyIsAMeanWithTheSameShares() {
        var evaluation = new Evaluation(2, List.of(0.5));
        evaluation.add(2, OptionalDouble.of(0.75));
        evaluation.add(4, OptionalDouble.of(0.25));

        assertThat(evaluation.meanAccuracy().orElseThrow()).isEqualTo((0.75 + 0.5 * 0.25) / 1.5);
        assertThat(new Evaluation(1, List.of()).meanAccuracy()).isEmpty();
    }
}
