package dev.penstock.runtime.metrics;

import dev.penstock.actors.spi.RankStep;
import dev.penstock.actors.spi.StepTraffic;
import java.util.List;

/** Steps of ranks of which a test says no more than times, memory and heap. */
public final class RankSteps {
    private RankSteps() {}

    public static RankStep of(
            int rank,
            long[] opStartNanos,
            long[] opEndNanos,
            long updateStartNanos,
            long updateEndNanos,
            long peakBytes,
            long allocatedHeapBytes) {
        return new RankStep(
                rank,
                opStartNanos,
                opEndNanos,
                updateStartNanos,
                updateEndNanos,
                peakBytes,
                List.of(),
                allocatedHeapBytes,
                List.of(),
                StepTraffic.NOTHING,
                new long[0]);
    }
}
