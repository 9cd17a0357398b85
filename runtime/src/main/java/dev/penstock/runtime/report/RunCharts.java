package dev.penstock.runtime.report;

import dev.penstock.runtime.report.LineChart.Look;
import dev.penstock.runtime.report.LineChart.Series;
import dev.penstock.runtime.report.RunCurves.Curve;
import java.util.Arrays;
import java.util.List;

/** The curves of a run as charts. */
final class RunCharts {
    private static final int WIDE = 960;
    private static final int TALL = 340;
    private static final int NARROW = 480;
    private static final int LOW = 220;

    private RunCharts() {}

    static LineChart loss(RunCurves curves) {
        return loss(curves, WIDE, TALL);
    }

    /** For phones: letters keep their size where the wide chart's would shrink. */
    static LineChart narrowLoss(RunCurves curves) {
        return loss(curves, NARROW, TALL);
    }

    private static LineChart loss(RunCurves curves, int width, int height) {
        double[] steps = curves.values(Curve.STEP);
        return new LineChart(
                "Loss over steps",
                "loss (nats per token)",
                List.of(
                        new Series("training", 1, Look.FAINT, steps, curves.values(Curve.LOSS)),
                        new Series("smoothed", 1, Look.LINE, steps, curves.smoothedLoss()),
                        new Series(
                                "validation",
                                2,
                                Look.POINTS,
                                curves.values(Curve.EVALUATION_STEP),
                                curves.values(Curve.VALIDATION_LOSS))),
                width,
                height);
    }

    static LineChart gradientNorm(RunCurves curves) {
        return small(
                "Gradient norm over steps",
                "gradient norm",
                new Series(
                        "before clipping",
                        4,
                        Look.LINE,
                        curves.values(Curve.STEP),
                        curves.values(Curve.GRADIENT_NORM)));
    }

    static LineChart learningRate(RunCurves curves) {
        double[] millionths =
                Arrays.stream(curves.values(Curve.LEARNING_RATE)).map(rate -> 1e6 * rate).toArray();
        return small(
                "Learning rate over steps",
                "learning rate (millionths)",
                new Series("learning rate", 3, Look.LINE, curves.values(Curve.STEP), millionths));
    }

    static LineChart speed(RunCurves curves) {
        return small(
                "Tokens per second over steps",
                "tokens per second",
                new Series(
                        "tokens/s",
                        3,
                        Look.LINE,
                        curves.values(Curve.STEP),
                        curves.values(Curve.TOKENS_PER_SECOND)));
    }

    static LineChart bubble(RunCurves curves) {
        return new LineChart(
                "Bubble over steps",
                "bubble (%)",
                List.of(
                        new Series(
                                "measured",
                                1,
                                Look.LINE,
                                curves.values(Curve.STEP),
                                percent(curves.values(Curve.BUBBLE_MEASURED))),
                        new Series(
                                "predicted",
                                2,
                                Look.DASHED,
                                curves.values(Curve.STEP),
                                percent(curves.values(Curve.BUBBLE_PREDICTED)))),
                NARROW,
                LOW);
    }

    private static LineChart small(String title, String label, Series series) {
        return new LineChart(title, label, List.of(series), NARROW, LOW);
    }

    private static double[] percent(double[] shares) {
        return Arrays.stream(shares).map(share -> 100 * share).toArray();
    }
}
