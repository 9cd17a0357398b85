package dev.penstock.benchmarks;

import dev.penstock.actors.spi.RankStep;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.runtime.launch.RunAssembly;
import dev.penstock.runtime.metrics.PipelineMeter;
import dev.penstock.runtime.metrics.StepMeasure;
import java.util.Comparator;
import java.util.List;

/**
 * The median of the second half of a short run's steps.
 *
 * @param flopsPerSecond of the model: matrix products and what attention sees, nothing recomputed
 * @param peakBytes device memory of the rank that holds most
 * @param heapBytesPerOp of the rank that allocates most
 * @param measuredOverPlanned device memory, the rank where it differs most
 */
record TrainingMeasurement(
        double tokensPerSecond,
        double stepSeconds,
        double flopsPerSecond,
        long peakBytes,
        double bubble,
        double efficiency,
        double heapBytesPerOp,
        double measuredOverPlanned) {

    /**
     * A training to measure.
     *
     * @param sequences the sequences of a step, divided into the micro-batches
     * @param settings the differences from a plain run, in the form of {@code --set}
     */
    record Setup(
            String name,
            TrainingShape shape,
            int steps,
            int sequences,
            int microBatches,
            List<String> settings) {}

    static TrainingMeasurement of(Setup setup) {
        return ShortRun.of(setup, TrainingMeasurement::summary);
    }

    private static TrainingMeasurement summary(RunAssembly assembly, List<StepReport> reports) {
        List<StepReport> steady =
                reports.subList(reports.size() / 2, reports.size()).stream()
                        .sorted(Comparator.comparingLong(r -> r.endNanos() - r.startNanos()))
                        .toList();
        StepReport median = steady.get((steady.size() - 1) / 2);
        StepMeasure measure =
                new PipelineMeter(assembly.plan().training(), assembly.plan().grid())
                        .measure(median);
        double seconds = (median.endNanos() - median.startNanos()) / 1e9;
        double heap = 0;
        double memory = 1;
        for (RankStep rank : median.ranks()) {
            heap = Math.max(heap, (double) rank.allocatedHeapBytes() / rank.opEndNanos().length);
            double ratio =
                    (double) rank.peakBytes() / assembly.plannedMemory().get(rank.rank()).total();
            memory = Math.abs(ratio - 1) > Math.abs(memory - 1) ? ratio : memory;
        }
        double rate = assembly.model().tokensPerStep() / seconds;
        return new TrainingMeasurement(
                rate,
                seconds,
                rate * assembly.model().shape().flopsPerToken(),
                median.ranks().stream().mapToLong(RankStep::peakBytes).max().orElse(0),
                measure.times().bubble(),
                measure.efficiency(),
                heap,
                memory);
    }
}
