package dev.penstock.schedules.plan;

import dev.penstock.schedules.plan.work.RankMemory;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** Says in sentences why a plan is the best, or why there is none. */
public final class PlanExplanation {
    private static final int REFUSALS_SHOWN = 4;

    private PlanExplanation() {}

    /** One sentence per entry. */
    public static List<String> of(PlanReport report) {
        return report.winner().map(winner -> why(report, winner)).orElseGet(() -> none(report));
    }

    private static List<String> why(PlanReport report, Plan winner) {
        var lines = new ArrayList<String>();
        lines.add(
                "%s takes %s per step: its busiest rank computes for %s, %.1f %% of all ranks' time is bubble, reductions and optimizer take up to %s."
                        .formatted(
                                winner.choice().describe(),
                                time(winner.stepNanos()),
                                time(winner.busyNanos()),
                                100 * winner.bubbleShare(),
                                time(winner.tailNanos())));
        RankMemory tightest = tightest(winner);
        lines.add(
                "It needs most on rank %d: %s of %s (%s for parameters, gradients and optimizer, %s for activations, %s of working space)."
                        .formatted(
                                tightest.rank(),
                                size(tightest.bytes()),
                                size(tightest.capacity()),
                                size(tightest.state()),
                                size(tightest.activations()),
                                size(tightest.working())));
        if (report.plans().size() > 1) {
            lines.add(compared(winner, report.plans().get(1)));
        }
        report.refusals().stream()
                .limit(REFUSALS_SHOWN)
                .forEach(refusal -> lines.add(refused(refusal)));
        report.leastOpenNanos()
                .filter(least -> least < winner.stepNanos())
                .ifPresent(
                        least ->
                                lines.add(
                                        "The search stopped before everything was decided: what is left could save %.1f %% at most."
                                                .formatted(
                                                        100
                                                                * (1
                                                                        - (double) least
                                                                                / winner
                                                                                        .stepNanos()))));
        return lines;
    }

    private static String compared(Plan winner, Plan next) {
        double longer = 100.0 * (next.stepNanos() - winner.stepNanos()) / winner.stepNanos();
        var reasons = new ArrayList<String>();
        difference(reasons, next.busyNanos() - winner.busyNanos(), "computes %s %s");
        long waitingNext = next.stepNanos() - next.busyNanos() - next.tailNanos();
        long waiting = winner.stepNanos() - winner.busyNanos() - winner.tailNanos();
        difference(reasons, waitingNext - waiting, "waits %s %s");
        difference(reasons, next.tailNanos() - winner.tailNanos(), "reduces and updates %s %s");
        if (longer < 0) {
            return "The runner-up, %s, takes %.1f %% less, which is near, and %s."
                    .formatted(
                            next.choice().describe(),
                            -longer,
                            next.peakBytes() > winner.peakBytes()
                                    ? "needs %s more memory"
                                            .formatted(size(next.peakBytes() - winner.peakBytes()))
                                    : "is less simple");
        }
        return "The runner-up, %s, takes %.1f %% longer%s."
                .formatted(
                        next.choice().describe(),
                        longer,
                        reasons.isEmpty()
                                ? " and needs " + size(next.peakBytes())
                                : ": its busiest rank " + String.join(", ", reasons));
    }

    private static void difference(List<String> reasons, long nanos, String text) {
        if (nanos != 0) {
            reasons.add(text.formatted(time(Math.abs(nanos)), nanos > 0 ? "longer" : "shorter"));
        }
    }

    private static String refused(Refusal refusal) {
        RankMemory memory = refusal.memory();
        return "%s would need %s more on rank %d (%s has %s); it could not take less than %s."
                .formatted(
                        refusal.choice().describe(),
                        size(memory.excess()),
                        memory.rank(),
                        refusal.device(),
                        size(memory.capacity()),
                        time(refusal.leastNanos()));
    }

    private static List<String> none(PlanReport report) {
        if (report.refusals().isEmpty()) {
            return List.of(
                    "no plan is possible: nothing divides the model and the batch among the devices");
        }
        Refusal nearest = report.refusals().getFirst();
        return List.of(
                "no plan fits: the least memory any plan needs is %s on %s, which has %s (%s)"
                        .formatted(
                                size(nearest.memory().bytes()),
                                nearest.device(),
                                size(nearest.memory().capacity()),
                                nearest.choice().describe()));
    }

    private static RankMemory tightest(Plan plan) {
        RankMemory tightest = plan.memory().getFirst();
        for (RankMemory rank : plan.memory()) {
            if (rank.bytes() > tightest.bytes()) {
                tightest = rank;
            }
        }
        return tightest;
    }

    /** Three figures in the unit that fits: {@code 11.2 GiB}. */
    static String size(long bytes) {
        String[] units = {"B", "KiB", "MiB", "GiB", "TiB"};
        double amount = bytes;
        int unit = 0;
        while (Math.abs(amount) >= 1024 && unit < units.length - 1) {
            amount /= 1024;
            unit++;
        }
        return String.format(Locale.ROOT, unit == 0 ? "%.0f %s" : "%.1f %s", amount, units[unit]);
    }

    /** In the unit that fits: {@code 79.0 s}. */
    static String time(long nanos) {
        if (nanos >= 1_000_000_000L) {
            return String.format(Locale.ROOT, "%.2f s", nanos / 1e9);
        }
        return nanos >= 1_000_000L
                ? String.format(Locale.ROOT, "%.1f ms", nanos / 1e6)
                : String.format(Locale.ROOT, "%.1f us", nanos / 1e3);
    }
}
