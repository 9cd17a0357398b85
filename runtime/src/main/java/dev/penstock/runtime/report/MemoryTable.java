package dev.penstock.runtime.report;

import dev.penstock.actors.spi.MemoryUse;
import dev.penstock.runtime.metrics.Quantities;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;

/** What ranks hold memory and files for: planned, proved and measured side by side. */
final class MemoryTable {
    private static final MemoryPlan UNKNOWN = new MemoryPlan(List.of(), List.of());

    private MemoryTable() {}

    /** A row for each rank and use; measured is each use's own most, not the most at one time. */
    static String of(RunFindings findings) {
        StringBuilder table =
                new StringBuilder(
                        "<div class=\"scroll\"><table><tr><th>rank</th><th>use</th><th>planned</th><th>proved</th><th>measured</th><th>measured"
                                + " against proved</th></tr>");
        List<List<MemoryUse>> ranks = findings.curves().usesOfMemory();
        for (int rank = 0; rank < ranks.size(); rank++) {
            List<MemoryUse> measured = named(ranks.get(rank));
            MemoryPlan plan = planOf(findings, rank);
            for (String use : usesOf(plan, measured)) {
                boolean hasFormula = plan.planned().stream().anyMatch(u -> u.use().equals(use));
                long proved = MemoryPlan.of(plan.proved(), use);
                long peak = MemoryPlan.of(measured, use);
                table.append("<tr><td>%d</td>".formatted(rank))
                        .append(ReportTables.cell(use))
                        .append(
                                ReportTables.cell(
                                        hasFormula
                                                ? Quantities.bytes(
                                                        MemoryPlan.of(plan.planned(), use))
                                                : "-"))
                        .append(ReportTables.cell(plan.isByUse() ? Quantities.bytes(proved) : "-"))
                        .append(ReportTables.cell(Quantities.bytes(peak)))
                        .append(ReportTables.cell(difference(proved, peak)))
                        .append("</tr>");
            }
        }
        return table.append("</table></div>").toString();
    }

    /** Of the rank that held most, in one line. */
    static Optional<String> ofLargestRank(RunFindings findings) {
        long[] peaks = findings.curves().peakBytes();
        List<List<MemoryUse>> ranks = findings.curves().usesOfMemory();
        if (ranks.isEmpty() || ranks.size() != peaks.length) {
            return Optional.empty();
        }
        int largest = 0;
        for (int rank = 1; rank < peaks.length; rank++) {
            largest = peaks[rank] > peaks[largest] ? rank : largest;
        }
        List<MemoryUse> measured = named(ranks.get(largest));
        MemoryPlan plan = planOf(findings, largest);
        String uses =
                usesOf(plan, measured).stream()
                        .map(
                                use ->
                                        "%s %s%s"
                                                .formatted(
                                                        use,
                                                        Quantities.bytes(
                                                                MemoryPlan.of(measured, use)),
                                                        proved(plan, use)))
                        .collect(Collectors.joining(", "));
        String beside = plan.isByUse() ? " (proved)" : "";
        return Optional.of("rank %d, measured%s: %s".formatted(largest, beside, uses));
    }

    private static String proved(MemoryPlan plan, String use) {
        return plan.isByUse()
                ? " (%s)".formatted(Quantities.bytes(MemoryPlan.of(plan.proved(), use)))
                : "";
    }

    private static MemoryPlan planOf(RunFindings findings, int rank) {
        List<MemoryPlan> plans = findings.facts().memory();
        return rank < plans.size() ? plans.get(rank) : UNKNOWN;
    }

    /** What no stage asked for is the device's own, whatever it is called. */
    private static List<MemoryUse> named(List<MemoryUse> uses) {
        return uses.stream()
                .map(
                        use ->
                                MemoryUse.ALL.contains(use.use())
                                        ? use
                                        : new MemoryUse(MemoryUse.KERNELS, use.peakBytes()))
                .toList();
    }

    /** Those that are something, in the order in which they are shown. */
    private static List<String> usesOf(MemoryPlan plan, List<MemoryUse> measured) {
        List<String> uses = new ArrayList<>(MemoryUse.ALL);
        uses.removeIf(
                use -> MemoryPlan.of(plan.proved(), use) == 0 && MemoryPlan.of(measured, use) == 0);
        return uses;
    }

    private static String difference(long proved, long measured) {
        return proved == 0
                ? "-"
                : Quantities.format("%+.1f %%", 100.0 * (measured - proved) / proved);
    }
}
