package dev.penstock.runtime.dashboard;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** One row of numbers per step, rising; kept by columns. Not thread-safe. */
final class StepSeries {
    /** What a row holds, in this order. */
    enum Column {
        STEP,
        LOSS,
        GRADIENT_NORM,
        LEARNING_RATE,
        STEP_MILLIS,
        TOKENS_PER_SECOND,
        BUBBLE_MEASURED,
        BUBBLE_PREDICTED,
        TIME,

        /** Of the rank that held most; NaN where no rank told. */
        PEAK_BYTES
    }

    /** A step, by names. */
    record Row(
            double gradientNorm,
            double learningRate,
            double stepMillis,
            double bubbleMeasured,
            double bubblePredicted) {}

    private static final int PACE_STEPS = 30;
    private static final int COLUMNS = Column.values().length;

    private double[][] columns = new double[COLUMNS][1024];
    private int rows;

    int rows() {
        return rows;
    }

    double value(Column column, int row) {
        return columns[column.ordinal()][row];
    }

    double last(Column column) {
        return rows == 0 ? Double.NaN : value(column, rows - 1);
    }

    /** The last step; NaN throughout before the first. */
    Row lastRow() {
        return new Row(
                last(Column.GRADIENT_NORM),
                last(Column.LEARNING_RATE),
                last(Column.STEP_MILLIS),
                last(Column.BUBBLE_MEASURED),
                last(Column.BUBBLE_PREDICTED));
    }

    /** A row of which no more is known. */
    static double[] row(double step, double loss) {
        double[] row = new double[COLUMNS];
        Arrays.fill(row, Double.NaN);
        row[Column.STEP.ordinal()] = step;
        row[Column.LOSS.ordinal()] = loss;
        return row;
    }

    void add(double... row) {
        if (rows == columns[0].length) {
            for (int c = 0; c < COLUMNS; c++) {
                columns[c] = Arrays.copyOf(columns[c], 2 * rows);
            }
        }
        for (int c = 0; c < COLUMNS; c++) {
            columns[c][rows] = row[c];
        }
        rows++;
    }

    /** Mean of the last steps; NaN before the first. */
    double tokensPerSecond() {
        int from = Math.max(0, rows - PACE_STEPS);
        double tokens = 0;
        double millis = 0;
        for (int row = from; row < rows; row++) {
            double took = value(Column.STEP_MILLIS, row);
            tokens += value(Column.TOKENS_PER_SECOND, row) * took / 1e3;
            millis += took;
        }
        return tokens / millis * 1e3;
    }

    /** Of the last steps, with what lies between them; NaN before the second. */
    double secondsPerStep() {
        int last = rows - 1;
        int from = Math.max(0, last - PACE_STEPS);
        if (last <= from) {
            return Double.NaN;
        }
        double millis = value(Column.TIME, last) - value(Column.TIME, from);
        return millis / (value(Column.STEP, last) - value(Column.STEP, from)) / 1e3;
    }

    /** Forgets the steps after this one. */
    void cutAfter(long step) {
        while (rows > 0 && columns[0][rows - 1] > step) {
            rows--;
        }
    }

    /** The rows from one on, each by its columns. */
    List<double[]> from(int first) {
        List<double[]> found = new ArrayList<>();
        for (int row = first; row < rows; row++) {
            double[] values = new double[COLUMNS];
            for (int c = 0; c < COLUMNS; c++) {
                values[c] = columns[c][row];
            }
            found.add(values);
        }
        return found;
    }

    /**
     * All columns; of more than {@code 2 * buckets} rows those with the lowest and the highest loss
     * of each run of neighbours, and the last one.
     */
    double[][] thinned(int buckets) {
        int[] kept = rows <= 2 * buckets ? null : extremes(buckets);
        double[][] thin = new double[COLUMNS][];
        for (int c = 0; c < COLUMNS; c++) {
            double[] column = columns[c];
            thin[c] =
                    kept == null
                            ? Arrays.copyOf(column, rows)
                            : Arrays.stream(kept).mapToDouble(row -> column[row]).toArray();
        }
        return thin;
    }

    private int[] extremes(int buckets) {
        double[] loss = columns[Column.LOSS.ordinal()];
        int[] kept = new int[2 * buckets + 1];
        int count = 0;
        for (int bucket = 0; bucket < buckets; bucket++) {
            int from = (int) ((long) bucket * rows / buckets);
            int to = (int) ((bucket + 1L) * rows / buckets);
            int low = from;
            int high = from;
            for (int row = from; row < to; row++) {
                low = loss[row] < loss[low] ? row : low;
                high = loss[row] > loss[high] ? row : high;
            }
            kept[count++] = Math.min(low, high);
            if (low != high) {
                kept[count++] = Math.max(low, high);
            }
        }
        if (kept[count - 1] != rows - 1) {
            kept[count++] = rows - 1;
        }
        return Arrays.copyOf(kept, count);
    }
}
