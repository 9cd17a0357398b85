package dev.penstock.schedules.render;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.OpText;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.Timeline;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

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
    private static final Cell IDLE = new Cell(".", null);
    private static final String CONTINUED = "-";

    /** What is seen of a cell, and what it is coloured as. */
    private record Cell(String text, @Nullable OpClass kind) {
        String painted(GridColors colors) {
            return kind == null ? text : colors.paint(kind, text);
        }
    }

    private ScheduleGrid() {}

    /**
     * The programs as they stand: column i is op i of every rank. Widths are what is seen, without
     * the codes of colours.
     */
    public static String order(Schedule schedule, GridColors colors) {
        var rows = new ArrayList<List<Cell>>();
        for (RankProgram program : schedule.programs()) {
            var row = new ArrayList<Cell>();
            for (Op op : program.ops()) {
                row.add(new Cell(OpText.print(op, schedule.shape()), OpClass.of(op)));
            }
            rows.add(row);
        }
        return aligned(rows, colors);
    }

    /**
     * Computations over time. A column is the greatest time that all starts and ends are multiples
     * of, so that with unit costs nothing is rounded; a timeline of more than {@value #MAX_COLUMNS}
     * columns is scaled down to as many. Widths are what is seen, as above.
     */
    public static String time(Timeline timeline, GridColors colors) {
        long column = columnNanos(timeline);
        int columns = Math.toIntExact((timeline.makespanNanos() + column - 1) / column);
        var rows = new ArrayList<List<Cell>>();
        for (RankProgram program : timeline.schedule().programs()) {
            var row = new Cell[columns];
            Arrays.fill(row, IDLE);
            for (int i = 0; i < timeline.opsRun(program.rank()); i++) {
                Op op = program.ops().get(i);
                if (!op.computations().isEmpty()) {
                    draw(row, timeline, program.rank(), i, column, op);
                }
            }
            rows.add(List.of(row));
        }
        return aligned(rows, colors);
    }

    private static void draw(
            Cell[] row, Timeline timeline, int rank, int position, long column, Op op) {
        long from = timeline.startNanos(rank, position) - timeline.startNanos();
        long to = timeline.endNanos(rank, position) - timeline.startNanos();
        int first = (int) (from / column);
        int end = (int) ((to + column - 1) / column);
        if (first < end) {
            OpClass kind = OpClass.of(op);
            Arrays.fill(row, first, end, new Cell(CONTINUED, kind));
            row[first] = new Cell(OpText.print(op, timeline.schedule().shape()), kind);
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

    private static String aligned(List<List<Cell>> rows, GridColors colors) {
        int width =
                rows.stream().flatMap(List::stream).mapToInt(ScheduleGrid::seen).max().orElse(0);
        int labels = String.valueOf(rows.size() - 1).length();
        var text = new StringBuilder();
        for (int rank = 0; rank < rows.size(); rank++) {
            var line = new StringBuilder("rank ");
            line.append(" ".repeat(labels - String.valueOf(rank).length())).append(rank);
            line.append(" |");
            int pad = 1;
            for (Cell cell : rows.get(rank)) {
                line.append(" ".repeat(pad)).append(cell.painted(colors));
                pad = width + 1 - seen(cell);
            }
            text.append(line).append('\n');
        }
        return text.toString();
    }

    private static int seen(Cell cell) {
        return cell.text.length();
    }
}
