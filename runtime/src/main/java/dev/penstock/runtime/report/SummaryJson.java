package dev.penstock.runtime.report;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.penstock.actors.spi.StepTraffic;
import dev.penstock.runtime.metrics.TaskMetrics;
import dev.penstock.runtime.report.RunCurves.Curve;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/** What came of a run, for programs. Numbers that are not known are null. */
final class SummaryJson {
    private static final ObjectMapper JSON = new ObjectMapper();

    private SummaryJson() {}

    /**
     * The document.
     *
     * @param outcome in words
     * @param steps done so far, earlier runs of the same directory included
     * @param loss of the last step, nats per token
     * @param tokensPerSecond in the median step
     * @param predictionError of a step's makespan, simulated with the profile of other steps: 0.05
     *     where it is 5 % too long
     * @param tasks that were measured while it trained
     */
    record Summary(
            String run,
            String outcome,
            long steps,
            @Nullable Double loss,
            @Nullable Double tokensPerSecond,
            @Nullable Double predictionError,
            List<Task> tasks,
            List<Rank> ranks) {}

    /**
     * The last figures of a task.
     *
     * @param context tokens that the model saw at most; 0: not known
     * @param measures by name; what is no number is null
     */
    record Task(
            String task,
            String protocol,
            int context,
            String data,
            long step,
            Map<String, @Nullable Number> measures) {
        static Task of(TaskMetrics line) {
            Map<String, @Nullable Number> measures = new LinkedHashMap<>();
            line.measures()
                    .forEach(
                            (name, value) ->
                                    measures.put(
                                            name,
                                            Double.isFinite(value.doubleValue()) ? value : null));
            return new Task(
                    line.task(),
                    line.protocol(),
                    line.context(),
                    line.data(),
                    line.step(),
                    measures);
        }
    }

    /**
     * One of the ranks that the run ended with.
     *
     * @param plannedBytes device memory as the judge proved it
     * @param peakBytes device memory as it was measured
     * @param predictedSentBytes in a training step, by use
     * @param sentBytes in the last step, by use
     */
    record Rank(
            @Nullable Long plannedBytes,
            long peakBytes,
            @Nullable Map<String, Long> predictedSentBytes,
            @Nullable Map<String, Long> sentBytes) {}

    static String of(RunFindings findings) {
        RunCurves curves = findings.curves();
        long[] peaks = curves.peakBytes();
        List<MemoryPlan> memory = findings.facts().memory();
        List<StepTraffic> predicted = findings.facts().traffic();
        List<StepTraffic> sent = curves.traffic();
        List<Rank> ranks =
                IntStream.range(0, peaks.length)
                        .mapToObj(
                                rank ->
                                        new Rank(
                                                rank < memory.size()
                                                        ? memory.get(rank).total()
                                                        : null,
                                                peaks[rank],
                                                byUse(predicted, rank),
                                                byUse(sent, rank)))
                        .toList();
        var summary =
                new Summary(
                        findings.facts().name(),
                        findings.ending().told(),
                        curves.steps() == 0 ? 0 : (long) curves.last(Curve.STEP),
                        finite(curves.last(Curve.LOSS)),
                        finite(curves.median(Curve.TOKENS_PER_SECOND)),
                        finite(
                                findings.prediction()
                                        .map(Prediction::makespanError)
                                        .orElse(Double.NaN)),
                        TaskTable.last(curves.tasks()).stream().map(Task::of).toList(),
                        ranks);
        try {
            return JSON.writerWithDefaultPrettyPrinter().writeValueAsString(summary) + "\n";
        } catch (JsonProcessingException e) {
            throw new IllegalStateException("a record of numbers and text", e);
        }
    }

    private static @Nullable Map<String, Long> byUse(List<StepTraffic> ranks, int rank) {
        return rank < ranks.size() ? ranks.get(rank).byUse() : null;
    }

    private static @Nullable Double finite(double value) {
        return Double.isFinite(value) ? value : null;
    }
}
