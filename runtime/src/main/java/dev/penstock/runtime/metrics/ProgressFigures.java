package dev.penstock.runtime.metrics;

import dev.penstock.actors.spi.StepReport;
import dev.penstock.actors.spi.StepTokens;
import java.time.Duration;
import java.util.OptionalDouble;
import java.util.function.LongSupplier;

/** The numbers that progress reports show. Not thread-safe. */
final class ProgressFigures {
    /**
     * The weight of the newest step in the speed shown; the first step and the second have full
     * weight, since the first one is slow.
     */
    private static final double NEWEST = 0.2;

    private final long firstStep;
    private final long lastStep;
    private final StepTokens tokens;
    private final PipelineMeter meter;
    private final LongSupplier nanoClock;

    private long step;
    private long firstMeasuredStep;
    private long firstMeasuredNanos;
    private double loss = Double.NaN;
    private double validationLoss = Double.NaN;
    private OptionalDouble accuracy = OptionalDouble.empty();
    private double stepNanos = Double.NaN;
    private double stepTokens;
    private double bubbleMeasured = Double.NaN;
    private double bubblePredicted = Double.NaN;

    ProgressFigures(
            long firstStep,
            long lastStep,
            StepTokens tokens,
            PipelineMeter meter,
            LongSupplier nanoClock) {
        this.firstStep = firstStep;
        this.lastStep = lastStep;
        this.tokens = tokens;
        this.meter = meter;
        this.nanoClock = nanoClock;
        this.step = firstStep;
    }

    void onStep(StepReport report) {
        step = report.step();
        loss = report.loss();
        double nanos = report.endNanos() - report.startNanos();
        boolean warmingUp = firstMeasuredStep == 0 || step == firstMeasuredStep + 1;
        double newest = warmingUp ? 1 : NEWEST;
        stepNanos = newest == 1 ? nanos : newest * nanos + (1 - newest) * stepNanos;
        stepTokens = newest * tokens.of(step) + (1 - newest) * stepTokens;
        StepMeasure measure = meter.measure(report);
        bubbleMeasured = measure.times().bubble();
        bubblePredicted = measure.ideal().bubble();
        if (firstMeasuredStep == 0) {
            firstMeasuredStep = step;
            firstMeasuredNanos = nanoClock.getAsLong();
        }
    }

    /** Returns to an earlier step; the remaining time is estimated afresh from here. */
    void goBackTo(long doneStep) {
        step = doneStep;
        firstMeasuredStep = 0;
    }

    void onEvaluation(double heldOutLoss, OptionalDouble heldOutAccuracy) {
        validationLoss = heldOutLoss;
        accuracy = heldOutAccuracy;
    }

    long nowNanos() {
        return nanoClock.getAsLong();
    }

    long step() {
        return step;
    }

    long firstStep() {
        return firstStep;
    }

    long lastStep() {
        return lastStep;
    }

    /**
     * Returns {@code loss 3.1416 validation 3.2000 12.3k tokens/s bubble 14.2 % (predicted 11.1
     * %)}.
     */
    String figures() {
        String validation = Double.isNaN(validationLoss) ? "" : "  validation " + heldOut();
        return "loss %s%s  %s tokens/s  bubble %s (predicted %s)"
                .formatted(
                        Quantities.loss(loss),
                        validation,
                        Quantities.count(stepTokens / stepNanos * 1e9),
                        Quantities.percent(bubbleMeasured),
                        Quantities.percent(bubblePredicted));
    }

    /** Returns the same figures for a line that is shared with a bar. */
    ProgressLine.Figures shortFigures() {
        return new ProgressLine.Figures(
                Quantities.loss(loss),
                Quantities.count(stepTokens / stepNanos * 1e9),
                Quantities.percent(bubbleMeasured),
                Quantities.percent(bubblePredicted),
                Double.isNaN(validationLoss) ? "" : heldOut());
    }

    private String heldOut() {
        String loss = Quantities.loss(validationLoss);
        return accuracy.isEmpty()
                ? loss
                : loss + " accuracy " + Quantities.percent(accuracy.getAsDouble());
    }

    /** Returns whether there were steps after the first, which is slow. */
    boolean knowPace() {
        return step > firstMeasuredStep && firstMeasuredStep > 0;
    }

    /**
     * Returns the remaining time, estimated from the steps after the first, which is slow: it
     * counts only as long as there is no other.
     */
    Duration left() {
        long done = firstMeasuredStep == 0 ? 0 : step - firstMeasuredStep;
        double perStep = done > 0 ? (double) (nowNanos() - firstMeasuredNanos) / done : stepNanos;
        return Double.isNaN(perStep)
                ? Duration.ZERO
                : Duration.ofNanos((long) (perStep * (lastStep - step)));
    }
}
