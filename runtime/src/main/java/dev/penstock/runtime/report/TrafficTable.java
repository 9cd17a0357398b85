package dev.penstock.runtime.report;

import dev.penstock.actors.spi.StepTraffic;
import dev.penstock.runtime.metrics.Notices;
import dev.penstock.runtime.metrics.Quantities;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** What ranks send to others in a step: predicted and measured side by side, to the byte. */
final class TrafficTable {
    private TrafficTable() {}

    /** Whether anybody sends anything. */
    static boolean isAny(RunFindings findings) {
        return Stream.concat(
                        findings.curves().traffic().stream(), findings.facts().traffic().stream())
                .anyMatch(rank -> rank.bytes() > 0);
    }

    /** A row for each rank and use that is something, and one for all uses of a rank. */
    static String of(RunFindings findings) {
        StringBuilder table =
                new StringBuilder(
                        "<div class=\"scroll\"><table><tr><th>rank</th><th>use</th><th>predicted</th>"
                                + "<th>measured</th><th>difference</th></tr>");
        List<StepTraffic> ranks = findings.curves().traffic();
        for (int rank = 0; rank < ranks.size(); rank++) {
            Optional<StepTraffic> predicted = predicted(findings, rank);
            Map<String, Long> expected = predicted.orElse(StepTraffic.NOTHING).byUse();
            for (Map.Entry<String, Long> use : ranks.get(rank).byUse().entrySet()) {
                long of = Objects.requireNonNull(expected.get(use.getKey()));
                if (of != 0 || use.getValue() != 0) {
                    Optional<Long> known = predicted.map(_ -> of);
                    append(table, rank, use.getKey(), known, use.getValue());
                }
            }
            append(
                    table,
                    rank,
                    "all",
                    predicted.map(StepTraffic::mostBytes),
                    ranks.get(rank).bytes());
        }
        return table.append("</table></div>").toString();
    }

    private static Optional<StepTraffic> predicted(RunFindings findings, int rank) {
        List<StepTraffic> ranks = findings.facts().traffic();
        return rank < ranks.size() ? Optional.of(ranks.get(rank)) : Optional.empty();
    }

    private static void append(
            StringBuilder table, int rank, String use, Optional<Long> predicted, long measured) {
        table.append("<tr><td>%d</td>".formatted(rank))
                .append(ReportTables.cell(use))
                .append(ReportTables.cell(predicted.map(TrafficTable::bytes).orElse("-")))
                .append(ReportTables.cell(bytes(measured)))
                .append(ReportTables.cell(predicted.map(p -> told(measured - p)).orElse("-")))
                .append("</tr>");
    }

    private static String bytes(long bytes) {
        return Quantities.format("%,d", bytes);
    }

    private static String told(long difference) {
        return difference == 0 ? "0" : Quantities.format("%+,d", difference);
    }

    /** Of the rank that sent most, in one line; nothing where nobody sends anything. */
    static Optional<String> ofBusiestRank(RunFindings findings) {
        List<StepTraffic> ranks = findings.curves().traffic();
        return IntStream.range(0, ranks.size())
                .boxed()
                .max(Comparator.comparingLong(rank -> ranks.get(rank).bytes()))
                .filter(rank -> ranks.get(rank).bytes() > 0)
                .map(
                        rank ->
                                "rank %d %s%s: %s"
                                        .formatted(
                                                rank,
                                                Quantities.bytes(ranks.get(rank).bytes()),
                                                predicted(findings, rank)
                                                        .map(p -> " (" + said(p, ranks.get(rank)))
                                                        .map(text -> text + ")")
                                                        .orElse(""),
                                                Notices.traffic(ranks.get(rank))));
    }

    /**
     * Outer gradients travel in some steps alone, and of fragments that are not equally large; in
     * these steps no sums do.
     */
    private static boolean isPredicted(StepTraffic predicted, StepTraffic measured) {
        long outer = measured.outerGradients();
        boolean apart = predicted.outerGradients() > 0 && measured.gradientSums() == 0;
        StepTraffic expected = apart ? predicted.apart(outer) : predicted.withOuterGradients(outer);
        return outer <= predicted.outerGradients() && measured.equals(expected);
    }

    private static String said(StepTraffic predicted, StepTraffic measured) {
        return isPredicted(predicted, measured)
                ? "as predicted"
                : "predicted " + Quantities.bytes(predicted.mostBytes());
    }
}
