package dev.penstock.runtime.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.Precision;
import java.util.List;
import org.junit.jupiter.api.Test;

class Bf16RunTest {
    @Test
    void roundedFactorsFollowTheSinglePrecisionRunCloselyButNotExactly() {
        BatchShape batch = TinyRuns.batch(List.of(16));
        try (PipelineDriver single =
                        TinyRuns.pipeline(
                                TinyRuns.settings(TinyRuns.TIED, 2, batch, Precision.FLOAT32));
                PipelineDriver rounded =
                        TinyRuns.pipeline(
                                TinyRuns.settings(TinyRuns.TIED, 2, batch, Precision.BF16))) {
            for (int step = 1; step <= 5; step++) {
                double loss = single.train(step);

                assertThat(rounded.train(step)).isCloseTo(loss, within(0.02)).isNotEqualTo(loss);
            }
        }
    }

    @Test
    void theNumberOfStagesDoesNotChangeABit() {
        BatchShape batch = TinyRuns.batch(List.of(8, 8));
        try (PipelineDriver one =
                        TinyRuns.pipeline(
                                TinyRuns.settings(TinyRuns.TIED, 1, batch, Precision.BF16));
                PipelineDriver three =
                        TinyRuns.pipeline(
                                TinyRuns.settings(TinyRuns.TIED, 3, batch, Precision.BF16))) {
            for (int step = 1; step <= 3; step++) {
                assertThat(three.train(step)).isEqualTo(one.train(step));
            }
        }
    }
}
