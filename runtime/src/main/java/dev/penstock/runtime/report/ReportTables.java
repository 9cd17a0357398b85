package dev.penstock.runtime.report;

import dev.penstock.runtime.metrics.Activity;
import dev.penstock.runtime.metrics.Quantities;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/** The tables of the page. */
final class ReportTables {
    private static final List<Activity> OF_SPAN =
            Arrays.stream(Activity.values()).filter(a -> a != Activity.UPDATE).toList();

    private ReportTables() {}

    /** Where the time of a step went: a row per rank, means over the run. */
    static String times(RunCurves curves) {
        int ranks = curves.meanNanos(Activity.FORWARD).length;
        StringBuilder table = new StringBuilder("<div class=\"scroll\"><table><tr><th>rank</th>");
        for (Activity activity : Activity.values()) {
            table.append("<th>%s</th>".formatted(GanttLane.said(activity)));
        }
        table.append("<th>shares of the span</th></tr>");
        for (int rank = 0; rank < ranks; rank++) {
            table.append("<tr><td>%d</td>".formatted(rank));
            for (Activity activity : Activity.values()) {
                table.append(cell(Quantities.nanos(nanos(curves, activity, rank))));
            }
            table.append("<td>").append(shares(curves, rank)).append("</td></tr>");
        }
        return table.append("</table></div>").toString();
    }

    /** Device memory per rank, planned beside measured. */
    static String memory(RunFindings findings) {
        List<MemoryPlan> plans = findings.facts().memory();
        List<String> devices = findings.recorder().devices();
        RunCurves curves = findings.curves();
        long[] peaks = curves.peakBytes();
        double[] heap = curves.heapBytesPerOp();
        StringBuilder table =
                new StringBuilder(
                        "<div class=\"scroll\"><table><tr><th>rank</th><th>device</th><th>planned</th><th>measured"
                                + " peak</th><th>difference</th><th>heap per op</th></tr>");
        for (int rank = 0; rank < peaks.length; rank++) {
            boolean planned = rank < plans.size();
            long plan = planned ? plans.get(rank).total() : 0;
            table.append("<tr><td>%d</td>".formatted(rank))
                    .append(cell(rank < devices.size() ? devices.get(rank) : "-"))
                    .append(cell(planned ? Quantities.bytes(plan) : "-"))
                    .append(cell(Quantities.bytes(peaks[rank])))
                    .append(
                            cell(
                                    plan > 0
                                            ? Quantities.format(
                                                    "%+.1f %%", 100.0 * (peaks[rank] - plan) / plan)
                                            : "-"))
                    .append(cell(rank < heap.length ? Quantities.bytes(heap[rank]) : "-"))
                    .append("</tr>");
        }
        return table.append("</table></div>").toString();
    }

    /** A row per fault. */
    static String faults(List<FaultOutcome> faults) {
        StringBuilder table =
                new StringBuilder(
                        "<div class=\"scroll\"><table><tr><th>fault</th><th>happened</th><th>outcome</th><th>detected</th><th>resumed</th><th>steps"
                                + " lost</th></tr>");
        for (FaultOutcome fault : faults) {
            var recovery = fault.recovery();
            table.append("<tr>")
                    .append(cell(fault.fault().describe()))
                    .append(cell(fault.fired().map(Object::toString).orElse("-")))
                    .append(cell(fault.told()))
                    .append(cell(recovery.map(r -> millis(r.detectMillis())).orElse("-")))
                    .append(cell(recovery.map(r -> millis(r.resumeMillis())).orElse("-")))
                    .append(cell(recovery.map(r -> "" + r.stepsLost()).orElse("-")))
                    .append("</tr>");
        }
        return table.append("</table></div>").toString();
    }

    private static String millis(double millis) {
        return Quantities.nanos(millis * 1e6);
    }

    /** Names and values, in their order. */
    static String facts(Map<String, String> facts) {
        StringBuilder table = new StringBuilder("<table class=\"facts\">");
        facts.forEach(
                (name, value) -> table.append("<tr>%s%s</tr>".formatted(cell(name), cell(value))));
        return table.append("</table>").toString();
    }

    private static String shares(RunCurves curves, int rank) {
        double span = 0;
        for (Activity activity : OF_SPAN) {
            span += nanos(curves, activity, rank);
        }
        StringBuilder bar = new StringBuilder("<div class=\"shares\">");
        for (Activity activity : OF_SPAN) {
            double share = span == 0 ? 0 : nanos(curves, activity, rank) / span;
            bar.append(
                    "<span class=\"%s\" style=\"width:%s%%\" title=\"%s %s\"></span>"
                            .formatted(
                                    activity.label(),
                                    Quantities.format("%.3f", 100 * share),
                                    GanttLane.said(activity),
                                    Quantities.percent(share)));
        }
        return bar.append("</div>").toString();
    }

    private static double nanos(RunCurves curves, Activity activity, int rank) {
        double[] ranks = curves.meanNanos(activity);
        return rank < ranks.length ? ranks[rank] : 0;
    }

    static String cell(String text) {
        return "<td>" + Markup.escape(text) + "</td>";
    }
}
