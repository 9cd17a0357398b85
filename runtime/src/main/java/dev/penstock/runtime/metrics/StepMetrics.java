package dev.penstock.runtime.metrics;

import dev.penstock.actors.spi.MemoryUse;
import dev.penstock.actors.spi.StepTraffic;
import java.time.Instant;
import java.util.Collections;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/**
 * A line of type {@code step}: one committed training step.
 *
 * @param layout the same for steps whose ranks did the same work with the same memory; empty if not
 *     known
 * @param loss mean over the step's tokens before the update, natural logarithm; NaN where unknown
 * @param gradientNorm global L2 norm before clipping
 * @param clipFactor factor on the gradients, 1 for none
 * @param tokens of the step
 * @param stepMillis from the start command to the last rank's end
 * @param bubbleMeasured share of the step's span in which ranks did no forward or backward
 * @param bubblePredicted the same share in the simulated step, see {@link IdealStep}
 * @param pipelineEfficiency makespan of the simulated step over the measured span
 * @param rankMillis per activity one entry per rank
 * @param peakBytes per rank: peak of device memory so far
 * @param usesOfMemory per rank: its uses of memory, each with its own peak
 * @param traffic per rank: the bytes sent to others for the step
 * @param heapBytesPerOp per rank: heap bytes allocated during the step's ops, per op
 */
public record StepMetrics(
        long step,
        Instant time,
        String layout,
        double loss,
        double gradientNorm,
        double clipFactor,
        double learningRate,
        long tokens,
        double stepMillis,
        double bubbleMeasured,
        double bubblePredicted,
        double pipelineEfficiency,
        Map<Activity, List<Double>> rankMillis,
        List<Long> peakBytes,
        List<List<MemoryUse>> usesOfMemory,
        List<StepTraffic> traffic,
        List<Double> heapBytesPerOp)
        implements MetricsLine {
    public StepMetrics {
        EnumMap<Activity, List<Double>> ordered = new EnumMap<>(Activity.class);
        rankMillis.forEach((activity, millis) -> ordered.put(activity, List.copyOf(millis)));
        rankMillis = Collections.unmodifiableMap(ordered);
        peakBytes = List.copyOf(peakBytes);
        usesOfMemory = List.copyOf(usesOfMemory);
        traffic = List.copyOf(traffic);
        heapBytesPerOp = List.copyOf(heapBytesPerOp);
    }

    /** Returns the training tokens per second of this step, without evaluations and checkpoints. */
    public double tokensPerSecond() {
        return tokens / stepMillis * 1e3;
    }
}
