package dev.penstock.schedules.plan;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.schedules.plan.work.TrainingBytes;
import dev.penstock.schedules.plan.work.ZeroStage;
import java.util.Arrays;
import java.util.Locale;
import org.junit.jupiter.api.Test;

/** The numbers that the papers print. */
class FormulasTest {
    private static final long P = 7_500_000_000L;

    private static String gigabytes(ZeroStage stage) {
        double gigabytes = stage.bytes(P, TrainingBytes.MIXED, 64) / 1e9;
        return String.format(
                Locale.ROOT,
                gigabytes >= 100 ? "%.0f" : gigabytes >= 10 ? "%.1f" : "%.2f",
                gigabytes);
    }

    @Test
    void zerosTableForSevenAndAHalfBillionOnSixtyFour() {
        assertThat(Arrays.stream(ZeroStage.values()).map(FormulasTest::gigabytes))
                .containsExactly("120", "31.4", "16.6", "1.88");
    }

    @Test
    void zerosMemoryInOtherPrecisions() {
        assertThat(ZeroStage.NONE.bytes(10, TrainingBytes.FP32, 5)).isEqualTo(160);
        assertThat(ZeroStage.OPTIMIZER.bytes(10, TrainingBytes.FP32, 5)).isEqualTo(80 + 16);
        assertThat(ZeroStage.GRADIENTS.bytes(10, TrainingBytes.BF16_FP32_GRADIENTS, 5))
                .isEqualTo(20 + 8 + 24);
        assertThat(ZeroStage.PARAMETERS.bytes(11, TrainingBytes.FP32, 5)).isEqualTo(16 * 3);
        for (ZeroStage stage : ZeroStage.values()) {
            assertThat(stage.bytes(10, TrainingBytes.MIXED, 1)).isEqualTo(160);
        }
        assertThatThrownBy(() -> ZeroStage.NONE.bytes(1, TrainingBytes.FP32, 0))
                .hasMessageContaining("1 replica");
        assertThatThrownBy(() -> new TrainingBytes(0, 1, 1, 1)).hasMessageContaining("1 or more");
    }

    @Test
    void ptdpsTrillionParameters() {
        double parameters = PtdpFormulas.parameters(128, 25_600, 51_200, 2_048);
        double flops = PtdpFormulas.flopsPerIteration(3_072, 128, 25_600, 51_200, 2_048);

        assertThat(Math.round(parameters / 1e9)).isEqualTo(1_008);
        assertThat(flops).isCloseTo(5.14e19, within(0.005e19));
        assertThat(Math.floor(PtdpFormulas.secondsPerIteration(flops, 3_072, 163e12)))
                .isEqualTo(102);
        assertThat(Math.round(PtdpFormulas.daysToTrain(450e9, parameters, 3_072, 163e12)))
                .isEqualTo(84);
    }

    @Test
    void ptdpsGpt3TrainsInAMonth() {
        // section 5.1: 175B, 1024 A100 at 140 TFLOP/s, 300B tokens: 34 days
        assertThat(Math.round(PtdpFormulas.daysToTrain(300e9, 175e9, 1_024, 140e12))).isEqualTo(34);
    }

    @Test
    void ptdpsTraffic() {
        assertThat(PtdpFormulas.hopTraffic(2, 2_048, 1_024)).isEqualTo(4_194_304);
        assertThat(PtdpFormulas.scatteredHopTraffic(2, 2_048, 1_024, 8)).isEqualTo(524_288);
        assertThat(PtdpFormulas.tensorParallelTraffic(1, 4, 8, 4)).isEqualTo(8 * 32 * 0.75);
        assertThat(PtdpFormulas.tensorParallelTraffic(1, 4, 8, 1)).isZero();
        assertThat(PtdpFormulas.bubble(8, 2, 14)).isEqualTo(0.25);
    }
}
