package dev.penstock.runtime.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.Precision;
import java.util.List;
import org.junit.jupiter.api.Test;

/** What IEEE halves do to a net whose gradients are smaller than they can be. */
class HalvesTest {
    private static final int STEPS = 25;

    /** The loss of the last step of a net all of whose gradients are multiplied by this. */
    private static double train(Precision precision, double gradients) {
        GptSettings settings =
                TinyRuns.settings(TinyRuns.TIED, 1, TinyRuns.batch(List.of(16)), precision);
        try (PipelineDriver pipeline = TinyRuns.pipeline(settings).scalingLoss(gradients)) {
            double loss = 0;
            for (int step = 1; step <= STEPS; step++) {
                loss = pipeline.train(step);
            }
            return loss;
        }
    }

    @Test
    void gradientsThatVanishInHalvesAreThereAgainWhenTheLossIsScaled() {
        double small = 0x1p-20;
        double exact = train(Precision.FLOAT32, small);

        double vanishing = train(Precision.FP16, small);
        double scaled = train(Precision.FP16, small * 0x1p20);

        assertThat(train(Precision.FLOAT32, 1)).isEqualTo(exact);
        assertThat(scaled).isCloseTo(exact, within(0.005 * exact));
        assertThat(vanishing).isGreaterThan(1.02 * exact);
    }
}
