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
    private static final String ROW = "%4s %6s %6s %6s %6s %10s %10s %7s  %s";

    /** Columns of a row without what is between the bar's brackets. */
    private static final int FIXED = 66;

    private static final int NARROWEST_BAR = 10;
    private static final int WIDEST_BAR = 24;
    private static final int HAPPENINGS = 5;

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
     * Reads what is new and says how the run stands, at full length.
     *
     * @param now milliseconds since 1970
     * @throws IOException if the log cannot be read
     */
    public List<String> lines(long now) throws IOException {
        return lines(now, Integer.MAX_VALUE, Integer.MAX_VALUE);
    }

    /**
     * Same as {@link #lines(long)} for a screen of this size: bars take what room there is, lines
     * are cut, and of ranks that do not fit the number is said.
     */
    public List<String> lines(long now, int columns, int rows) throws IOException {
        reader.poll(view::apply);
        RunHead head = view.head();
        int bar = Math.clamp((long) columns - FIXED, NARROWEST_BAR, WIDEST_BAR);
        List<String> lines = new ArrayList<>(standing(head, now));
        lines.add("");
        lines.add(
                ROW.formatted(
                        "rank",
                        "busy",
                        "sends",
                        "waits",
                        "idle",
                        "memory",
                        "planned",
                        "lease",
                        bar < WIDEST_BAR ? "f fwd b bwd" : "f forward b backward"));
        List<String> happenings =
                view.curves().happenings().reversed().stream()
                        .limit(HAPPENINGS)
                        .map(each -> "  " + each.kind() + ": " + plain(each.text()))
                        .toList();
        int ranks =
                Math.max(
                        head.rankMicros().values().stream().mapToInt(List::size).max().orElse(0),
                        head.peakBytes().size());
        int room = Math.max(1, rows - lines.size() - happenings.size() - 1);
        List<Long> planned = view.facts().map(RunView.Facts::plannedBytes).orElse(List.of());
        for (int rank = 0; rank < Math.min(ranks, room); rank++) {
            lines.add(line(head, planned, lease(rank), rank, bar));
        }
        if (ranks > room) {
            lines.add("  .. and %d more ranks".formatted(ranks - room));
        }
        lines.addAll(happenings);
        return lines.stream().map(line -> cut(line, columns)).toList();
    }

    private List<String> standing(RunHead head, long now) {
        StepSeries.Row last = view.lastRow();
        return List.of(
                "%s  %s, health %s%s"
                        .formatted(
                                plain(head.name()),
                                head.state(),
                                head.health(),
                                hasEnded() || head.lastSign() == 0
                                        ? ""
                                        : lastSign(now - head.lastSign())),
                "step %d of %d  loss %s  %s tokens/s  bubble %s (predicted %s)"
                        .formatted(
                                head.step(),
                                head.lastStep(),
                                Quantities.loss(head.loss()),
                                Quantities.count(head.tokensPerSecond()),
                                Quantities.percent(last.bubbleMeasured()),
                                Quantities.percent(last.bubblePredicted())));
    }

    private static String lastSign(long millis) {
        return "  last sign %s ago"
                .formatted(Quantities.clock(Duration.ofMillis(Math.max(0, millis))));
    }

    private static String cut(String line, int columns) {
        String bare = line.stripTrailing();
        return bare.length() <= columns ? bare : bare.substring(0, Math.max(0, columns - 1)) + "~";
    }

    /** Since the rank was last heard of, as told last. */
    private String lease(int rank) {
        RunStatusView standing = view.standing();
        for (int i = 0; i < standing.leaseMillis().size(); i++) {
            if (i < standing.members().size() && standing.members().get(i).rank() == rank) {
                return Quantities.format("%.1f s", standing.leaseMillis().get(i) / 1e3);
            }
        }
        return "-";
    }

    private static String line(RunHead head, List<Long> planned, String lease, int rank, int bar) {
        double forward = micros(head, Activity.FORWARD, rank);
        double backward = micros(head, Activity.BACKWARD, rank);
        double send = micros(head, Activity.SEND, rank);
        double wait = micros(head, Activity.RECEIVE, rank) + micros(head, Activity.REDUCE, rank);
        double idle = micros(head, Activity.IDLE, rank);
        double all = Math.max(1, forward + backward + send + wait + idle);
        int f = (int) Math.round(forward / all * bar);
        int b = Math.min((int) Math.round(backward / all * bar), bar - f);
        return ROW.formatted(
                rank,
                share(forward + backward, all),
                share(send, all),
                share(wait, all),
                share(idle, all),
                rank < head.peakBytes().size() ? Quantities.bytes(head.peakBytes().get(rank)) : "-",
                rank < planned.size() ? Quantities.bytes(planned.get(rank)) : "-",
                lease,
                "[" + "f".repeat(f) + "b".repeat(b) + " ".repeat(bar - f - b) + "]");
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
