package dev.penstock.runtime.report;

import dev.penstock.actors.spi.MemoryUse;
import dev.penstock.actors.spi.RecoveryReport;
import dev.penstock.actors.spi.StepTraffic;
import dev.penstock.runtime.metrics.Activity;
import dev.penstock.runtime.metrics.EvaluationMetrics;
import dev.penstock.runtime.metrics.MetricsFile;
import dev.penstock.runtime.metrics.MetricsLine;
import dev.penstock.runtime.metrics.RecoveryMetrics;
import dev.penstock.runtime.metrics.SkippedMetrics;
import dev.penstock.runtime.metrics.StepMetrics;
import dev.penstock.runtime.metrics.TaskMetrics;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.stream.DoubleStream;

/**
 * What {@code metrics.jsonl} tells about a run as a whole, read in one pass so that long runs fit
 * into memory. Also of runs that were resumed, and of runs long gone.
 */
final class RunCurves {
    private final Map<Curve, DoubleStream.Builder> building = new EnumMap<>(Curve.class);
    private final Map<Curve, double[]> curves = new EnumMap<>(Curve.class);
    private final Map<Activity, double[]> rankMillis = new EnumMap<>(Activity.class);
    private long[] peakBytes = {};

    private String layout = "";

    /** Steps since the run has been laid out as it is now. */
    private int stepsOfLayout;

    private List<List<MemoryUse>> usesOfMemory = List.of();
    private List<StepTraffic> traffic = List.of();

    /** The last steps, in all of which ranks sent as much. */
    private int stepsOfTraffic;

    private double[] heapBytesPerOp = {};
    private double tokens;
    private double stepMillis;
    private final List<TaskMetrics> tasks = new ArrayList<>();
    private final List<Long> leftOut = new ArrayList<>();
    private double lastStep;

    /** One value per step, or per evaluation. */
    enum Curve {
        STEP,
        LOSS,
        GRADIENT_NORM,
        LEARNING_RATE,
        TOKENS_PER_SECOND,
        STEP_MILLIS,
        BUBBLE_MEASURED,
        BUBBLE_PREDICTED,
        EFFICIENCY,
        EVALUATION_STEP,
        VALIDATION_LOSS,
        VALIDATION_ACCURACY
    }

    private RunCurves() {
        for (Curve curve : Curve.values()) {
            building.put(curve, DoubleStream.builder());
        }
    }

    /** Reads a metrics file; one that is missing gives no points. */
    static RunCurves read(Path metrics) throws IOException {
        RunCurves curves = new RunCurves();
        MetricsFile.forEach(metrics, curves::add);
        curves.building.forEach(
                (curve, values) -> curves.curves.put(curve, values.build().toArray()));
        return curves;
    }

    double[] values(Curve curve) {
        return curves.getOrDefault(curve, new double[0]);
    }

    /** The last value of a curve, NaN where there is none. */
    double last(Curve curve) {
        double[] values = values(curve);
        return values.length == 0 ? Double.NaN : values[values.length - 1];
    }

    double lowest(Curve curve) {
        return Arrays.stream(values(curve)).min().orElse(Double.NaN);
    }

    /** The middle value of a curve: slow first steps do not move it. */
    double median(Curve curve) {
        double[] sorted = Arrays.stream(values(curve)).filter(Double::isFinite).sorted().toArray();
        return sorted.length == 0
                ? Double.NaN
                : (sorted[(sorted.length - 1) / 2] + sorted[sorted.length / 2]) / 2;
    }

    int steps() {
        return values(Curve.STEP).length;
    }

    /** Steps of which nothing was applied, because they were not finite. */
    List<Long> leftOut() {
        return List.copyOf(leftOut);
    }

    /** Figures of tasks, in the order of steps. */
    List<TaskMetrics> tasks() {
        return List.copyOf(tasks);
    }

    /** Tokens over the time of the steps, slow ones included. */
    double tokensPerSecond() {
        return tokens / stepMillis * 1e3;
    }

    /** The loss as an exponential average over about a fortieth of the run. */
    double[] smoothedLoss() {
        double[] loss = values(Curve.LOSS);
        double weight = 2.0 / (Math.max(5, loss.length / 40.0) + 1);
        double[] smoothed = new double[loss.length];
        double sum = 0;
        double weights = 0;
        for (int i = 0; i < loss.length; i++) {
            if (Double.isFinite(loss[i])) {
                sum = (1 - weight) * sum + weight * loss[i];
                weights = (1 - weight) * weights + weight;
            }
            smoothed[i] = sum / weights;
        }
        return smoothed;
    }

    /** Per rank, what it held device memory for; empty where not known. */
    List<List<MemoryUse>> usesOfMemory() {
        return usesOfMemory;
    }

    /** Per rank, what it sent to others in the last step; empty where not known. */
    List<StepTraffic> traffic() {
        return traffic;
    }

    /** How many of the last steps had just this traffic. */
    int stepsOfTraffic() {
        return stepsOfTraffic;
    }

    /** Per rank, the most device memory held in the layout that the run ended with. */
    long[] peakBytes() {
        return peakBytes.clone();
    }

    /** Per rank, heap bytes per op of the last step. */
    double[] heapBytesPerOp() {
        return heapBytesPerOp.clone();
    }

    /**
     * Per rank, the mean time of a step spent on an activity, in nanoseconds; of the steps in the
     * layout that the run ended with.
     */
    double[] meanNanos(Activity activity) {
        double[] sums = rankMillis.getOrDefault(activity, new double[0]);
        return Arrays.stream(sums).map(millis -> millis * 1e6 / stepsOfLayout).toArray();
    }

    private void add(MetricsLine line) {
        switch (line) {
            case StepMetrics step -> {
                if (step.step() > lastStep) {
                    lastStep = step.step();
                    addStep(step);
                }
            }
            case EvaluationMetrics evaluation -> {
                add(Curve.EVALUATION_STEP, evaluation.step());
                add(Curve.VALIDATION_LOSS, evaluation.validationLoss());
                evaluation
                        .validationAccuracy()
                        .ifPresent(share -> add(Curve.VALIDATION_ACCURACY, share));
            }
            case TaskMetrics task -> tasks.add(task);
            case SkippedMetrics _ -> {} // told among the run's events
            case RecoveryMetrics recovery -> { // told among the run's events
                if (recovery.report().restart() == RecoveryReport.Restart.SKIPPED) {
                    leftOut.add(recovery.step());
                }
            }
        }
    }

    private void addStep(StepMetrics step) {
        add(Curve.STEP, step.step());
        add(Curve.LOSS, step.loss());
        add(Curve.GRADIENT_NORM, step.gradientNorm());
        add(Curve.LEARNING_RATE, step.learningRate());
        add(Curve.TOKENS_PER_SECOND, step.tokensPerSecond());
        add(Curve.STEP_MILLIS, step.stepMillis());
        add(Curve.BUBBLE_MEASURED, step.bubbleMeasured());
        add(Curve.BUBBLE_PREDICTED, step.bubblePredicted());
        add(Curve.EFFICIENCY, step.pipelineEfficiency());
        if (Double.isNaN(step.stepMillis())) { // its process was killed before it measured it
            return;
        }
        tokens += step.tokens();
        stepMillis += step.stepMillis();
        if (step.peakBytes().size() != peakBytes.length || !step.layout().equals(layout)) {
            layout = step.layout();
            peakBytes = new long[step.peakBytes().size()];
            usesOfMemory = List.of();
            rankMillis.clear();
            stepsOfLayout = 0;
        }
        stepsOfLayout++;
        step.rankMillis().forEach(this::addMillis);
        for (int rank = 0; rank < step.peakBytes().size(); rank++) {
            peakBytes[rank] = Math.max(peakBytes[rank], step.peakBytes().get(rank));
        }
        if (!step.usesOfMemory().isEmpty()) {
            usesOfMemory = step.usesOfMemory(); // peaks: those of the last step are the most
        }
        if (!step.traffic().equals(traffic)) {
            traffic = step.traffic();
            stepsOfTraffic = 0;
        }
        stepsOfTraffic++;
        heapBytesPerOp = step.heapBytesPerOp().stream().mapToDouble(Double::doubleValue).toArray();
    }

    private void addMillis(Activity activity, List<Double> ranks) {
        double[] before = rankMillis.getOrDefault(activity, new double[0]);
        double[] sums = Arrays.copyOf(before, Math.max(before.length, ranks.size()));
        for (int rank = 0; rank < ranks.size(); rank++) {
            sums[rank] += ranks.get(rank);
        }
        rankMillis.put(activity, sums);
    }

    private void add(Curve curve, double value) {
        DoubleStream.Builder values = building.get(curve);
        if (values != null) {
            values.add(value);
        }
    }
}
