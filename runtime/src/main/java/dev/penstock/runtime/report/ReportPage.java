package dev.penstock.runtime.report;

import dev.penstock.runtime.metrics.Activity;
import dev.penstock.runtime.metrics.IdealStep;
import dev.penstock.runtime.metrics.Quantities;
import dev.penstock.runtime.metrics.StepTimes;
import dev.penstock.runtime.report.RunCurves.Curve;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The page of a run: one file that loads nothing, forbids itself to load anything, and needs no
 * script. Light and dark, from a phone's width up.
 */
final class ReportPage {
    static final String HEAD =
            """
            <!DOCTYPE html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
            <meta name="referrer" content="no-referrer">
            <meta name="generator" content="Penstock">
            """;

    private final RunFindings findings;
    private final RunCurves curves;

    ReportPage(RunFindings findings) {
        this.findings = findings;
        this.curves = findings.curves();
    }

    String html() {
        StringBuilder page = new StringBuilder(HEAD);
        page.append("<title>%s - Penstock run</title>\n".formatted(text(name())));
        page.append("<style>\n")
                .append(Markup.resource("palette.css"))
                .append(Markup.resource("page.css"))
                .append(Markup.resource("chart.css"))
                .append("</style>\n</head>\n<body>\n<main>\n");
        appendHeader(page);
        if (curves.steps() > 0) {
            appendFigures(page);
            appendLearning(page);
        }
        if (!curves.tasks().isEmpty()) {
            page.append("<section>\n<h2>Tasks</h2>\n")
                    .append(
                            "<p class=\"note\">Measured with the run's checkpoints. Figures by"
                                    + " different protocols cannot be compared.</p>\n")
                    .append(TaskTable.of(curves.tasks()))
                    .append("</section>\n");
        }
        findings.typical().ifPresent(step -> appendStep(page, step));
        findings.prediction().ifPresent(prediction -> appendPrediction(page, prediction));
        if (curves.steps() > 0) {
            appendTimes(page);
            appendMemory(page);
        }
        if (TrafficTable.isAny(findings)) {
            appendTraffic(page);
        }
        if (!findings.facts().faults().get().isEmpty()) {
            appendFaults(page);
        }
        findings.ending().sample().ifPresent(sample -> appendSample(page, sample));
        appendEnvironment(page);
        appendConfiguration(page);
        return page.append("</main>\n</body>\n</html>\n").toString();
    }

    private void appendHeader(StringBuilder page) {
        RunEnding ending = findings.ending();
        page.append("<header>\n<h1>%s</h1>\n".formatted(text(name())));
        page.append(
                "<div><span class=\"badge %s\">%s</span><span class=\"muted\">%s</span></div>\n</header>\n"
                        .formatted(
                                ending.isGood() ? "good" : "warn",
                                text(ending.told()),
                                text(
                                        "%s parameters, schedule %s, %d ranks, %d micro-batches%s, %s"
                                                .formatted(
                                                        Quantities.count(
                                                                findings.facts().parameters()),
                                                        findings.facts().schedule().name(),
                                                        findings.facts().grid().ranks(),
                                                        findings.facts()
                                                                .schedule()
                                                                .shape()
                                                                .microBatches(),
                                                        slices(),
                                                        ending.took()))));
    }

    private void appendFigures(StringBuilder page) {
        double[] smoothed = curves.smoothedLoss();
        page.append("<dl class=\"figures\">\n");
        figure(
                page,
                "Training loss",
                Quantities.loss(smoothed[smoothed.length - 1]),
                "smoothed; last step " + Quantities.loss(curves.last(Curve.LOSS)));
        figure(
                page,
                "Validation loss",
                Quantities.loss(curves.last(Curve.VALIDATION_LOSS)),
                "best " + Quantities.loss(curves.lowest(Curve.VALIDATION_LOSS)));
        figure(
                page,
                "Tokens per second",
                Quantities.count(curves.median(Curve.TOKENS_PER_SECOND)),
                "median step; " + Quantities.count(curves.tokensPerSecond()) + " over all steps");
        figure(
                page,
                "Steps",
                Quantities.format("%.0f", curves.last(Curve.STEP)),
                "of %d, %s tokens each"
                        .formatted(
                                findings.facts().steps(),
                                Quantities.count(findings.facts().tokensPerStep())));
        figure(
                page,
                "Step time",
                Quantities.nanos(1e6 * curves.median(Curve.STEP_MILLIS)),
                "median, with the optimizer");
        figure(
                page,
                "Bubble",
                Quantities.percent(curves.median(Curve.BUBBLE_MEASURED)),
                "predicted " + Quantities.percent(curves.median(Curve.BUBBLE_PREDICTED)));
        figure(
                page,
                "Pipeline efficiency",
                Quantities.percent(curves.median(Curve.EFFICIENCY)),
                "of the schedule's ideal");
        figure(
                page,
                "Peak memory of a rank",
                Quantities.bytes(Arrays.stream(curves.peakBytes()).max().orElse(0)),
                planned());
        page.append("</dl>\n");
    }

    private void appendLearning(StringBuilder page) {
        page.append("<section>\n<h2>Learning</h2>\n");
        page.append(
                "<div class=\"off-phones\">%s</div>\n<div class=\"on-phones\">%s</div>\n"
                        .formatted(
                                RunCharts.loss(curves).inline(),
                                RunCharts.narrowLoss(curves).inline()));
        page.append("<div class=\"pair\">");
        scroll(page, RunCharts.gradientNorm(curves).inline());
        scroll(page, RunCharts.learningRate(curves).inline());
        scroll(page, RunCharts.speed(curves).inline());
        scroll(page, RunCharts.bubble(curves).inline());
        page.append("</div>\n</section>\n");
    }

    private void appendStep(StringBuilder page, TypicalStep step) {
        StepTimes times = step.measure().times();
        IdealStep ideal = step.measure().ideal();
        page.append("<section>\n<h2>A typical step</h2>\n");
        page.append(
                "<p>Step %d is the median of %d traced steps. Its ops took %s; the same schedule with the same op times, but with transfers and collectives that cost nothing and every micro-batch as fast as the mean, takes %s: an efficiency of %s. %s</p>\n"
                        .formatted(
                                step.step(),
                                step.chosenFrom(),
                                Quantities.nanos(times.spanNanos()),
                                Quantities.nanos(ideal.makespanNanos()),
                                Quantities.percent(step.measure().efficiency()),
                                text(difference(times, ideal))));
        StepGantt gantt = step.gantt();
        scroll(page, gantt.inline());
        page.append(gantt.table());
        page.append(
                "<p class=\"note\">Numbers are micro-batches%s. The dashed line is the end of the last op; the optimizer follows it and is not part of the bubble. Every op of a few steps is in trace.json, for ui.perfetto.dev or chrome://tracing.</p>\n</section>\n"
                        .formatted(slices().isEmpty() ? "" : " and token slices"));
    }

    private void appendPrediction(StringBuilder page, Prediction prediction) {
        var tables = new PredictionTables(prediction);
        Prediction.Unseen median = prediction.median();
        page.append("<section>\n<h2>Predicted and measured</h2>\n");
        page.append(
                "<p>A profile of half of the recent steps, simulated, predicts %s for a step's ops; step %d, the median of the %d that the profile has not seen, took %s: the prediction's error is %s. With commit and update, %s and %s, it is %s. If every op takes what it took in step %d itself, the simulator needs %s for it: %s lie between ops, the rest of the error is in ops that vary. Transfers take no time in the simulation unless links are emulated; gathers and sums over replicas take what they kept their ranks, copies of activations and loads what they took beside them.</p>\n"
                        .formatted(
                                Quantities.nanos(prediction.simulated().makespanNanos()),
                                median.step(),
                                prediction.unseen().size(),
                                Quantities.nanos(median.makespanNanos()),
                                PredictionTables.signedPercent(prediction.makespanError()),
                                Quantities.nanos(prediction.updateNanos()),
                                Quantities.nanos(median.updateNanos()),
                                PredictionTables.signedPercent(prediction.stepError()),
                                median.step(),
                                Quantities.nanos(prediction.ownNanos()),
                                PredictionTables.signedPercent(
                                        Prediction.error(
                                                prediction.ownNanos(), median.makespanNanos()))));
        page.append("<h3>By kind of op</h3>\n").append(tables.kinds());
        page.append("<h3>By rank</h3>\n").append(tables.ranks());
        page.append(
                        "<h3>Which ops of step %d were slower than the profile</h3>\n"
                                .formatted(median.step()))
                .append(tables.slowerOps());
        page.append("<h3>Where its waiting came from</h3>\n").append(tables.waits());
        page.append("</section>\n");
    }

    private void appendTimes(StringBuilder page) {
        page.append("<section>\n<h2>Step timeline</h2>\n");
        page.append(
                "<p class=\"note\">Mean over all steps of the run, per rank. All but the optimizer"
                        + " add up to the span from the step's first op to its last; the bubble is what"
                        + " is neither forward nor backward.</p>\n");
        page.append(ReportTables.times(curves)).append("\n</section>\n");
    }

    private void appendMemory(StringBuilder page) {
        page.append("<section>\n<h2>Device memory</h2>\n");
        page.append(ReportTables.memory(findings));
        if (!curves.usesOfMemory().isEmpty()) {
            page.append(MemoryTable.of(findings));
        }
        page.append("\n</section>\n");
    }

    private void appendTraffic(StringBuilder page) {
        page.append("<section>\n<h2>Traffic between ranks</h2>\n");
        page.append(
                "<p class=\"note\">Bytes of tensors per rank and training step: predicted from the program and the model's sizes before the run, and measured in the last step; %d steps up to it sent just as much. Headers of frames, blocks sent once more and what is kept elsewhere for recoveries are not counted.</p>\n"
                        .formatted(curves.stepsOfTraffic()));
        page.append(TrafficTable.of(findings)).append("\n</section>\n");
    }

    private void appendFaults(StringBuilder page) {
        page.append("<section>\n<h2>Injected faults</h2>\n");
        page.append(
                "<p class=\"note\">Detected: from the fault to the start of the recovery. Resumed:"
                        + " from there until every rank was open again.</p>\n");
        page.append(ReportTables.faults(findings.facts().faults().get())).append("\n</section>\n");
    }

    private static void appendSample(StringBuilder page, String sample) {
        page.append(
                "<section>\n<h2>Sample of the model's text</h2>\n<pre>%s</pre>\n</section>\n"
                        .formatted(text(sample)));
    }

    private void appendEnvironment(StringBuilder page) {
        Map<String, String> facts = new LinkedHashMap<>();
        facts.putAll(findings.recorder().events());
        findings.recorder().devices().stream()
                .distinct()
                .forEach(device -> facts.merge("device", device, (a, b) -> a + "; " + b));
        if (!findings.recorder().fingerprint().isEmpty()) {
            facts.put("kernels", findings.recorder().fingerprint());
        }
        facts.putAll(findings.facts().environment());
        page.append("<section>\n<h2>Events and environment</h2>\n")
                .append(ReportTables.facts(facts))
                .append("\n</section>\n");
    }

    private void appendConfiguration(StringBuilder page) {
        page.append(
                "<section>\n<details>\n<summary>Configuration</summary>\n<pre>%s</pre>\n</details>\n</section>\n"
                        .formatted(text(findings.facts().configuration())));
    }

    /** Computations take as long in both steps, so what is left adds up to the difference. */
    private static String difference(StepTimes times, IdealStep ideal) {
        StepTimes best = ideal.times();
        double waiting = more(times, best, Activity.RECEIVE) + more(times, best, Activity.IDLE);
        return "The difference of %s, over the mean of the ranks: sending %s, summing shared gradients %s, waiting for tensors or between ops %s."
                .formatted(
                        Quantities.nanos(times.spanNanos() - best.spanNanos()),
                        PredictionTables.signed(more(times, best, Activity.SEND)),
                        PredictionTables.signed(more(times, best, Activity.REDUCE)),
                        PredictionTables.signed(waiting));
    }

    private static double more(StepTimes times, StepTimes best, Activity activity) {
        return times.meanNanos(activity) - best.meanNanos(activity);
    }

    private static void figure(StringBuilder page, String what, String value, String beside) {
        page.append(
                "<div class=\"figure\"><dt>%s</dt><dd><div class=\"value\">%s</div><div class=\"beside\">%s</div></dd></div>\n"
                        .formatted(text(what), text(value), text(beside)));
    }

    private static void scroll(StringBuilder page, String picture) {
        page.append("<div class=\"scroll\" tabindex=\"0\">%s</div>\n".formatted(picture));
    }

    private String planned() {
        long most = findings.facts().memory().stream().mapToLong(MemoryPlan::total).max().orElse(0);
        return most == 0 ? "not planned" : "planned " + Quantities.bytes(most);
    }

    private String slices() {
        int slices = findings.facts().schedule().shape().slices();
        return slices == 1 ? "" : " of %d token slices".formatted(slices);
    }

    private String name() {
        return findings.facts().name();
    }

    private static String text(String untrusted) {
        return Markup.escape(untrusted);
    }
}
