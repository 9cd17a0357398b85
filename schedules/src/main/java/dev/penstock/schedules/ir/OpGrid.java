package dev.penstock.schedules.ir;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableSet;
import java.util.TreeSet;
import java.util.stream.IntStream;

/**
 * Ops of a schedule with signs on them, cut out with a little of what stands around them.
 *
 * <pre>
 * op     | 0   1    2    3
 * rank 0 | 0F0 !0B0 ?0F1 0B1
 * rank 1 | 1F0 !1F1 ?1B0 1B1
 * rank 2 | 2F0 2B0  2F1  2B1
 * </pre>
 */
public final class OpGrid {
    /** Each op with an exclamation mark waits until the one with the question mark has run. */
    public static final String DEADLOCK = "! is blocked, ? is what it waits for";

    /** An op with an exclamation mark breaks a rule. */
    public static final String FAULT = "! breaks a rule";

    private static final int AROUND = 2;
    private static final int MAX_WHOLE_RANKS = 8;
    private static final String GAP = "..";

    private final Schedule schedule;

    /** Position to the sign before or around the op, by rank. */
    private final Map<Integer, Map<Integer, String>> marks = new HashMap<>();

    /** What is missing at the end of a rank's program. */
    private final Map<Integer, Op> missing = new HashMap<>();

    private final NavigableSet<Integer> ranks = new TreeSet<>();
    private final NavigableSet<Integer> columns = new TreeSet<>();

    public OpGrid(Schedule schedule) {
        this.schedule = schedule;
        if (schedule.shape().ranks() <= MAX_WHOLE_RANKS) {
            IntStream.range(0, schedule.shape().ranks()).forEach(ranks::add);
        }
    }

    /**
     * Ranks of a running pipeline that stand still.
     *
     * @param standing where they stand
     * @param awaited ops that they wait for
     */
    public static String ofStandstill(
            Schedule schedule, Collection<OpPlace> standing, Collection<OpPlace> awaited) {
        var grid = new OpGrid(schedule);
        standing.forEach(place -> grid.mark(place, "!"));
        awaited.forEach(place -> grid.mark(place, "?"));
        return grid.print(DEADLOCK);
    }

    /** Puts a sign before an op; "!" stays where it is already. */
    public void mark(OpPlace place, String sign) {
        marks.computeIfAbsent(place.rank(), _ -> new HashMap<>())
                .merge(place.position(), sign, (a, b) -> a.equals("!") ? a : b);
        show(place);
    }

    /** Adds an op that its rank lacks, after the rank's last one. */
    public void markMissing(OpPlace place) {
        missing.putIfAbsent(place.rank(), place.op());
        show(place);
    }

    private void show(OpPlace place) {
        ranks.add(place.rank());
        for (int i = place.position() - AROUND; i <= place.position() + AROUND; i++) {
            if (i >= 0) {
                columns.add(i);
            }
        }
    }

    /**
     * The grid, with a legend of its signs.
     *
     * @param signs what the signs before ops mean; {@link #DEADLOCK} or {@link #FAULT}
     */
    public String print(String signs) {
        int end =
                ranks.stream()
                        .mapToInt(rank -> length(rank) + (missing.containsKey(rank) ? 1 : 0))
                        .max()
                        .orElse(0);
        List<Integer> shown = withGaps(columns.headSet(end, false), end);
        var rows = new ArrayList<List<String>>();
        rows.add(shown.stream().map(column -> column < 0 ? GAP : String.valueOf(column)).toList());
        for (int rank : ranks) {
            rows.add(shown.stream().map(column -> cell(rank, column)).toList());
        }
        return aligned(rows) + legend(signs);
    }

    /** With -1 wherever columns are left out. */
    private static List<Integer> withGaps(NavigableSet<Integer> columns, int end) {
        var shown = new ArrayList<Integer>();
        int next = 0;
        for (int column : columns) {
            if (column > next) {
                shown.add(-1);
            }
            shown.add(column);
            next = column + 1;
        }
        if (next < end) {
            shown.add(-1);
        }
        return shown;
    }

    private int length(int rank) {
        return schedule.program(rank).ops().size();
    }

    private String cell(int rank, int column) {
        if (column < 0) {
            return GAP;
        }
        if (column < length(rank)) {
            Op op = schedule.program(rank).ops().get(column);
            return marks.getOrDefault(rank, Map.of()).getOrDefault(column, "")
                    + OpText.print(op, schedule.shape());
        }
        return column == length(rank) && missing.containsKey(rank)
                ? "(" + OpText.print(missing.get(rank), schedule.shape()) + ")"
                : "";
    }

    private String aligned(List<List<String>> rows) {
        var labels = new ArrayList<>(List.of("op"));
        ranks.forEach(rank -> labels.add("rank " + rank));
        int label = labels.stream().mapToInt(String::length).max().orElse(0);
        int[] widths =
                IntStream.range(0, rows.getFirst().size())
                        .map(column -> width(rows, column))
                        .toArray();
        var text = new StringBuilder();
        for (int i = 0; i < rows.size(); i++) {
            var line = new StringBuilder(labels.get(i));
            line.append(" ".repeat(label - line.length())).append(" | ");
            for (int column = 0; column < widths.length; column++) {
                String cell = rows.get(i).get(column);
                line.append(cell).append(" ".repeat(widths[column] + 1 - cell.length()));
            }
            text.append(line.toString().stripTrailing()).append('\n');
        }
        return text.toString();
    }

    private static int width(List<List<String>> rows, int column) {
        return rows.stream().mapToInt(row -> row.get(column).length()).max().orElse(0);
    }

    private String legend(String meaning) {
        var signs = new ArrayList<String>();
        if (!marks.isEmpty()) {
            signs.add(meaning);
        }
        if (!missing.isEmpty()) {
            signs.add("(..) is missing");
        }
        return String.join(", ", signs) + "\n";
    }
}
