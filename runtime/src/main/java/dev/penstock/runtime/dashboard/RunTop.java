package dev.penstock.runtime.dashboard;

import dev.penstock.runtime.events.EventLogReader;
import dev.penstock.runtime.metrics.Activity;
import dev.penstock.runtime.metrics.Quantities;
import dev.penstock.runtime.metrics.RunDirectory;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** The ranks of a run as lines of text, from its event log. One thread at a time. */
public final class RunTop {
    private static final int BAR = 24;

    private final RunView view;
    private final EventLogReader reader;

    /**
     * @param directory of a run with an event log
     */
    public RunTop(RunDirectory directory) {
        this.view = new RunView(directory.path());
        this.reader = new EventLogReader(directory.events());
    }

    /** Whether the log says that the run has ended. */
    public boolean hasEnded() {
        return !view.head().state().equals("running");
    }

    /**
     * Reads what is new and says how the run stands.
     *
     * @param now milliseconds since 1970
     * @throws IOException if the log cannot be read
     */
    public List<String> lines(long now) throws IOException {
        reader.poll(view::apply);
        RunHead head = view.head();
        StepSeries.Row last = view.lastRow();
        List<String> lines = new ArrayList<>();
        lines.add(
                "%s  %s, health %s  step %d of %d  loss %s  %s tokens/s  bubble %s (predicted %s)  last sign %s ago"
                        .formatted(
                                plain(head.name()),
                                head.state(),
                                head.health(),
                                head.step(),
                                head.lastStep(),
                                Quantities.loss(head.loss()),
                                Quantities.count(head.tokensPerSecond()),
                                Quantities.percent(last.bubbleMeasured()),
                                Quantities.percent(last.bubblePredicted()),
                                Quantities.clock(
                                        Duration.ofMillis(Math.max(0, now - head.lastSign())))));
        lines.add("");
        lines.add(
                "%4s  %6s %6s %6s %6s  %-26s %10s %10s %7s"
                        .formatted(
                                "rank",
                                "busy",
                                "sends",
                                "waits",
                                "idle",
                                "f forward  b backward",
                                "memory",
                                "planned",
                                "lease"));
        int ranks = head.rankMicros().values().stream().mapToInt(List::size).max().orElse(0);
        List<Long> planned = view.facts().map(RunView.Facts::plannedBytes).orElse(List.of());
        for (int rank = 0; rank < Math.max(ranks, head.peakBytes().size()); rank++) {
            lines.add(line(head, planned, lease(rank), rank));
        }
        view.curves().happenings().reversed().stream()
                .limit(5)
                .forEach(each -> lines.add("  " + each.kind() + ": " + plain(each.text())));
        return lines;
    }

    /** Since the rank was last heard of, as told last. */
    private String lease(int rank) {
        RunStanding standing = view.standing();
        for (int i = 0; i < standing.leaseMillis().size(); i++) {
            if (i < standing.members().size() && standing.members().get(i).rank() == rank) {
                return Quantities.format("%.1f s", standing.leaseMillis().get(i) / 1e3);
            }
        }
        return "-";
    }

    private static String line(RunHead head, List<Long> planned, String lease, int rank) {
        double forward = micros(head, Activity.FORWARD, rank);
        double backward = micros(head, Activity.BACKWARD, rank);
        double send = micros(head, Activity.SEND, rank);
        double wait = micros(head, Activity.RECEIVE, rank) + micros(head, Activity.REDUCE, rank);
        double idle = micros(head, Activity.IDLE, rank);
        double all = Math.max(1, forward + backward + send + wait + idle);
        int f = (int) Math.round(forward / all * BAR);
        int b = (int) Math.round(backward / all * BAR);
        return "%4d  %6s %6s %6s %6s  [%-24s] %10s %10s %7s"
                .formatted(
                        rank,
                        share(forward + backward, all),
                        share(send, all),
                        share(wait, all),
                        share(idle, all),
                        "f".repeat(f) + "b".repeat(Math.min(b, BAR - f)),
                        rank < head.peakBytes().size()
                                ? Quantities.bytes(head.peakBytes().get(rank))
                                : "-",
                        rank < planned.size() ? Quantities.bytes(planned.get(rank)) : "-",
                        lease);
    }

    private static double micros(RunHead head, Activity activity, int rank) {
        List<Long> ranks = head.rankMicros().getOrDefault(activity.label(), List.of());
        return rank < ranks.size() ? ranks.get(rank) : 0;
    }

    private static String share(double part, double all) {
        return String.format(Locale.ROOT, "%.0f %%", 100 * part / all);
    }

    /** Names come from outside and must not move the cursor. */
    private static String plain(String text) {
        return text.replaceAll("\\p{Cntrl}", "?");
    }
}
