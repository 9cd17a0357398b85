package dev.penstock.schedules.simulate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.withinPercentage;

import dev.penstock.schedules.generate.GPipe;
import dev.penstock.schedules.generate.TeraPipe;
import dev.penstock.schedules.generate.base.BackwardOrder;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Results of the papers that follow from their orders. */
class ReferenceResultsTest {
    /** A step's work on one rank, in one micro-batch. */
    private static final long STEP = 96_000_000;

    /** Throughput in samples: a step is one mini-batch, however it is cut. */
    private static double gpipeThroughput(int ranks, int microBatches) {
        Schedule schedule =
                GPipe.schedule(PipelineShape.of(ranks, microBatches), BackwardOrder.REVERSE);
        long part = STEP / ranks / microBatches;
        CostModel costs = CostModel.of(part, 2 * part, 0);
        return 1.0 / ScheduleSimulator.simulate(schedule, costs).makespanNanos();
    }

    /** GPipe (Huang et al. 2019), table 2: Transformer-48, M = 32. */
    @ParameterizedTest
    @CsvSource({"2, 1.8", "4, 3.4", "8, 6.3"})
    void gpipeScalesWith32MicroBatchesAsItsBubbleSays(int ranks, double measured) {
        double speedUp = gpipeThroughput(ranks, 32) / gpipeThroughput(2, 1);

        assertThat(speedUp).isCloseTo(measured, withinPercentage(10));
    }

    /**
     * TeraPipe (Li et al. 2021), setting 9: GPT-3 175B on 96 stages, 2 sequences of 2048 tokens. A
     * slice takes 4.96 ms plus 0.0477 ms per token, and at least 9.5 ms, forward and backward
     * together.
     */
    private static long terapipeNanos(int slices) {
        var shape = PipelineShape.of(96, 2, slices);
        long nanos = Math.max(9_500_000, 4_960_000 + 47_700L * (2048 / slices));
        CostModel costs = CostModel.of(nanos / 3, nanos - nanos / 3, 0);
        return ScheduleSimulator.simulate(TeraPipe.schedule(shape), costs).makespanNanos();
    }

    @ParameterizedTest
    @CsvSource({
        "1, 9.990",
        "4, 2.902",
        "8, 1.892",
        "16, 1.547",
        "32, 1.593",
        "64, 2.227",
        "128, 3.252"
    })
    void terapipesUniformSlicesTakeAsLongAsMeasured(int slices, double measuredSeconds) {
        assertThat(terapipeNanos(slices) / 1e9).isCloseTo(measuredSeconds, withinPercentage(10));
    }

    @Test
    void terapipesBestUniformSlicesAreAbout16() {
        int[] counts = {1, 2, 4, 8, 16, 32, 64, 128};

        int best =
                Arrays.stream(counts)
                        .boxed()
                        .min((a, b) -> Long.compare(terapipeNanos(a), terapipeNanos(b)))
                        .orElseThrow();

        assertThat(best).isEqualTo(16);
    }
}
