package dev.penstock.cuda.cpu;

import dev.penstock.cuda.device.Tensor;

/** Splits work over the threads of a pool: rows, columns, or runs of whole tensors. */
final class RowSplit {
    /** Floats of a run: two of them fit the first-level cache. */
    static final int RUN = 4096;

    /** Columns of a thread start on cache lines, whatever the vector. */
    private static final int COLUMN_QUANTUM = 16;

    private final WorkerPool pool;

    RowSplit(WorkerPool pool) {
        this.pool = pool;
    }

    @FunctionalInterface
    interface RowWork {
        void run(int row);
    }

    @FunctionalInterface
    interface ColumnWork {
        /** Columns {@code [first, first + count)}. */
        void run(int first, int count);
    }

    @FunctionalInterface
    interface RunWork {
        /** Run {@code index}: {@code n} elements at these addresses. */
        void run(int index, long x, long y, int n);
    }

    /** Each row on one thread. */
    void rows(int rows, int columns, RowWork work) {
        int threads = pool.threads();
        pool.run(
                (long) rows * columns,
                thread -> {
                    int end = Share.start(rows, 1, thread + 1, threads);
                    for (int i = Share.start(rows, 1, thread, threads); i < end; i++) {
                        work.run(i);
                    }
                });
    }

    /** Each column on one thread; for sums over rows. */
    void columns(int rows, int columns, ColumnWork work) {
        int threads = pool.threads();
        pool.run(
                (long) rows * columns,
                thread -> {
                    int first = Share.start(columns, COLUMN_QUANTUM, thread, threads);
                    int end = Share.start(columns, COLUMN_QUANTUM, thread + 1, threads);
                    if (first < end) {
                        work.run(first, end - first);
                    }
                });
    }

    /** Runs of a tensor when it is dense: {@link #RUN} elements and a shorter last one. */
    static int runs(Tensor x) {
        return Math.toIntExact((x.elements() + RUN - 1) / RUN);
    }

    /**
     * All elements of two tensors of one shape: by runs of {@link #RUN} if both are dense,
     * otherwise by rows.
     */
    void runs(Tensor x, Tensor y, RunWork work) {
        long xAt = x.address();
        long yAt = y.address();
        int xBytes = x.type().bytes();
        int yBytes = y.type().bytes();
        if (x.isDense() && y.isDense()) {
            long elements = x.elements();
            rows(
                    runs(x),
                    RUN,
                    i -> {
                        long first = (long) i * RUN;
                        int n = (int) Math.min(RUN, elements - first);
                        work.run(i, xAt + first * xBytes, yAt + first * yBytes, n);
                    });
        } else {
            long xRow = (long) x.stride() * xBytes;
            long yRow = (long) y.stride() * yBytes;
            rows(
                    x.rows(),
                    x.columns(),
                    i -> work.run(i, xAt + i * xRow, yAt + i * yRow, x.columns()));
        }
    }
}
