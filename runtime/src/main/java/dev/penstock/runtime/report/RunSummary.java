package dev.penstock.runtime.report;

import dev.penstock.runtime.metrics.Activity;
import dev.penstock.runtime.metrics.Quantities;
import dev.penstock.runtime.report.RunCurves.Curve;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.OptionalLong;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** The last words of a run on the terminal. */
final class RunSummary {
    private static final int WIDTH = 100;
    private static final int INDENT = 17;

    private RunSummary() {}

    /** Some lines of text, each ended. */
    static String text(RunFindings findings) {
        RunCurves curves = findings.curves();
        List<String> lines = new ArrayList<>();
        lines.add(
                line(
                        "run",
                        "%s, %s in %s"
                                .formatted(
                                        findings.facts().name().strip(),
                                        findings.ending().told(),
                                        findings.ending().took())));
        findings.recorder().unsaved().ifPresent(told -> lines.add(line("checkpoint", told)));
        OptionalLong done = findings.recorder().lastStep();
        double written = curves.steps() == 0 ? 0 : curves.last(Curve.STEP);
        if (done.isPresent() && done.getAsLong() > written) {
            lines.add(line("metrics", lacking(written, done.getAsLong())));
        }
        if (curves.steps() > 0) {
            lines.add(line("steps", steps(findings)));
            lines.add(line("loss", losses(curves)));
            TaskTable.lines(curves.tasks()).forEach(task -> lines.add(line("task", task)));
            lines.add(line("speed", speed(curves)));
            lines.add(line("pipeline", pipeline(curves)));
            findings.prediction()
                    .ifPresent(prediction -> lines.add(line("prediction", prediction(prediction))));
            lines.add(line("time per step", times(curves)));
            lines.add(line("peak memory", memory(findings)));
            MemoryTable.ofLargestRank(findings)
                    .ifPresent(uses -> lines.add(line("memory by use", uses)));
            TrafficTable.ofBusiestRank(findings)
                    .ifPresent(uses -> lines.add(line("sent per step", uses)));
        }
        return lines.stream().map(RunSummary::folded).collect(Collectors.joining());
    }

    private static String lacking(double written, long done) {
        return Quantities.format(
                "NOT WRITTEN after step %.0f, %d were done; the figures are of those written",
                written, done);
    }

    /** Goes on below itself where it gets long, between two things. */
    private static String folded(String line) {
        StringBuilder folded = new StringBuilder();
        int column = 0;
        for (String part : line.split("(?<=, )")) {
            if (column > 0 && column + part.stripTrailing().length() > WIDTH) {
                folded.setLength(folded.length() - 1);
                folded.append(System.lineSeparator()).append(" ".repeat(INDENT));
                column = INDENT;
            }
            folded.append(part);
            column += part.length();
        }
        return folded.toString();
    }

    /** One line, ended. */
    static String line(String what, String told) {
        // names come from outside and must not move the terminal's cursor
        return "  %-14s %s%n".formatted(what, told.replaceAll("\\p{Cntrl}", "?"));
    }

    private static String steps(RunFindings findings) {
        List<Long> leftOut = findings.curves().leftOut();
        return Quantities.format(
                "%.0f of %d, %s tokens each%s",
                findings.curves().last(Curve.STEP),
                findings.facts().steps(),
                Quantities.count(findings.facts().tokensPerStep()),
                leftOut.isEmpty() ? "" : "; left out, not finite: " + leftOut);
    }

    private static String losses(RunCurves curves) {
        double[] smoothed = curves.smoothedLoss();
        String validation =
                curves.values(Curve.VALIDATION_LOSS).length == 0
                        ? ""
                        : ", validation %s (best %s)"
                                .formatted(
                                        Quantities.loss(curves.last(Curve.VALIDATION_LOSS)),
                                        Quantities.loss(curves.lowest(Curve.VALIDATION_LOSS)));
        String accuracy =
                curves.values(Curve.VALIDATION_ACCURACY).length == 0
                        ? ""
                        : ", accuracy %s of the texts held out"
                                .formatted(
                                        Quantities.percent(curves.last(Curve.VALIDATION_ACCURACY)));
        return "%s at the end, %s smoothed%s%s"
                .formatted(
                        Quantities.loss(curves.last(Curve.LOSS)),
                        Quantities.loss(smoothed[smoothed.length - 1]),
                        validation,
                        accuracy);
    }

    private static String speed(RunCurves curves) {
        return "%s tokens/s in the median step, %s over all steps"
                .formatted(
                        Quantities.count(curves.median(Curve.TOKENS_PER_SECOND)),
                        Quantities.count(curves.tokensPerSecond()));
    }

    private static String pipeline(RunCurves curves) {
        return "bubble %s measured, %s predicted; efficiency %s of the ideal schedule"
                .formatted(
                        Quantities.percent(curves.median(Curve.BUBBLE_MEASURED)),
                        Quantities.percent(curves.median(Curve.BUBBLE_PREDICTED)),
                        Quantities.percent(curves.median(Curve.EFFICIENCY)));
    }

    private static String prediction(Prediction prediction) {
        return "a simulated step takes %s, a measured one %s: %s, with commit and update %s"
                .formatted(
                        Quantities.nanos(prediction.simulated().makespanNanos()),
                        Quantities.nanos(prediction.median().makespanNanos()),
                        PredictionTables.signedPercent(prediction.makespanError()),
                        PredictionTables.signedPercent(prediction.stepError()))
                .replace("µ", "u");
    }

    /** Mean over the ranks: {@code forward 20.1 ms, backward 40.2 ms, ...}. */
    private static String times(RunCurves curves) {
        return Arrays.stream(Activity.values())
                .map(
                        activity ->
                                activity.label()
                                        + " "
                                        + Quantities.nanos(
                                                Arrays.stream(curves.meanNanos(activity))
                                                        .average()
                                                        .orElse(0)))
                .collect(Collectors.joining(", "))
                .replace("µ", "u"); // terminals without UTF-8
    }

    private static String memory(RunFindings findings) {
        long[] peaks = findings.curves().peakBytes();
        List<MemoryPlan> planned = findings.facts().memory();
        return IntStream.range(0, peaks.length)
                .mapToObj(
                        rank ->
                                "rank %d %s%s"
                                        .formatted(
                                                rank,
                                                Quantities.bytes(peaks[rank]),
                                                rank < planned.size()
                                                        ? " (planned "
                                                                + Quantities.bytes(
                                                                        planned.get(rank).total())
                                                                + ")"
                                                        : ""))
                .collect(Collectors.joining(", "));
    }
}
