package dev.penstock.schedules.render;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.OpPlace;
import dev.penstock.schedules.ir.OpText;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.Timeline;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * Schedules as aligned text, one row per rank.
 *
 * <pre>
 * rank 0 | 0F0 0F1 .   .   0B0 0B1
 * rank 1 | .   1F0 1B0 1F1 1B1 .
 * </pre>
 */
public final class ScheduleGrid {
    private static final int MAX_COLUMNS = 400;
    private static final String IDLE = ".";
    private static final String CONTINUED = "-";

    private ScheduleGrid() {}

    /** The programs as they stand: column i is op i of every rank. */
    public static String order(Schedule schedule) {
        return order(schedule, List.of());
    }

    /** The same with some ops marked by an exclamation mark in front. */
    public static String order(Schedule schedule, Collection<OpPlace> marked) {
        Set<OpPlace> places = new HashSet<>(marked);
        var rows = new ArrayList<List<String>>();
        for (RankProgram program : schedule.programs()) {
            var row = new ArrayList<String>();
            for (int i = 0; i < program.ops().size(); i++) {
                Op op = program.ops().get(i);
                boolean mark = places.contains(new OpPlace(program.rank(), i, op));
                row.add((mark ? "!" : "") + OpText.print(op, schedule.shape()));
            }
            rows.add(row);
        }
        return aligned(rows);
    }

    /**
     * Computations over time. A column is the greatest time that all starts and ends are multiples
     * of, so that with unit costs nothing is rounded; a timeline of more than {@value #MAX_COLUMNS}
     * columns is scaled down to as many.
     */
    public static String time(Timeline timeline) {
        long column = columnNanos(timeline);
        int columns = Math.toIntExact((timeline.makespanNanos() + column - 1) / column);
        var rows = new ArrayList<List<String>>();
        for (RankProgram program : timeline.schedule().programs()) {
            var row = new String[columns];
            Arrays.fill(row, IDLE);
            for (int i = 0; i < timeline.opsRun(program.rank()); i++) {
                Op op = program.ops().get(i);
                if (!op.computations().isEmpty()) {
                    draw(row, timeline, program.rank(), i, column, op);
                }
            }
            rows.add(List.of(row));
        }
        return aligned(rows);
    }

    private static void draw(
            String[] row, Timeline timeline, int rank, int position, long column, Op op) {
        long from = timeline.startNanos(rank, position) - timeline.startNanos();
        long to = timeline.endNanos(rank, position) - timeline.startNanos();
        int first = (int) (from / column);
        int end = (int) ((to + column - 1) / column);
        if (first < end) {
            Arrays.fill(row, first, end, CONTINUED);
            row[first] = OpText.print(op, timeline.schedule().shape());
        }
    }

    private static long columnNanos(Timeline timeline) {
        long common = 0;
        for (RankProgram program : timeline.schedule().programs()) {
            for (int i = 0; i < timeline.opsRun(program.rank()); i++) {
                if (!program.ops().get(i).computations().isEmpty()) {
                    long from = timeline.startNanos(program.rank(), i) - timeline.startNanos();
                    common = gcd(gcd(common, from), timeline.durationNanos(program.rank(), i));
                }
            }
        }
        long least = (timeline.makespanNanos() + MAX_COLUMNS - 1) / MAX_COLUMNS;
        return Math.max(1, Math.max(common, least));
    }

    private static long gcd(long a, long b) {
        return b == 0 ? a : gcd(b, a % b);
    }

    private static String aligned(List<List<String>> rows) {
        int width =
                rows.stream().flatMap(List::stream).mapToInt(String::length).max().orElse(0) + 1;
        int labels = String.valueOf(rows.size() - 1).length();
        var text = new StringBuilder();
        for (int rank = 0; rank < rows.size(); rank++) {
            var line = new StringBuilder("rank ");
            line.append(" ".repeat(labels - String.valueOf(rank).length())).append(rank);
            line.append(" | ");
            for (String cell : rows.get(rank)) {
                line.append(cell).append(" ".repeat(width - cell.length()));
            }
            text.append(line.toString().stripTrailing()).append('\n');
        }
        return text.toString();
    }
}
