package dev.penstock.cuda.cpu;

import dev.penstock.cuda.device.Tensor;

/**
 * Splits work over the threads of a pool: rows, columns, or runs of whole tensors. What it hands to
 * the pool is made once and used again, since an op is hundreds of calls. Used by one caller at a
 * time, like the pool.
 */
final class RowSplit {
    /** Floats of a run: two of them fit the first-level cache. */
    static final int RUN = 4096;

    /** Columns of a thread start on cache lines, whatever the vector. */
    private static final int COLUMN_QUANTUM = 16;

    private final WorkerPool pool;
    private final Rows rows = new Rows();
    private final Columns columns = new Columns();
    private final Runs runs = new Runs();

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
    void rows(int count, int width, RowWork work) {
        rows.count = count;
        rows.work = work;
        pool.run((long) count * width, rows);
    }

    private final class Rows implements WorkerPool.Work {
        private int count;
        private RowWork work = _ -> {};

        @Override
        public void run(int thread) {
            int end = Share.start(count, 1, thread + 1, pool.threads());
            for (int i = Share.start(count, 1, thread, pool.threads()); i < end; i++) {
                work.run(i);
            }
        }
    }

    /** Each column on one thread; for sums over rows. */
    void columns(int height, int count, ColumnWork work) {
        columns.count = count;
        columns.work = work;
        pool.run((long) height * count, columns);
    }

    private final class Columns implements WorkerPool.Work {
        private int count;
        private ColumnWork work = (_, _) -> {};

        @Override
        public void run(int thread) {
            int first = Share.start(count, COLUMN_QUANTUM, thread, pool.threads());
            int end = Share.start(count, COLUMN_QUANTUM, thread + 1, pool.threads());
            if (first < end) {
                work.run(first, end - first);
            }
        }
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
        boolean dense = x.isDense() && y.isDense();
        runs.work = work;
        runs.x = x.address();
        runs.y = y.address();
        runs.length = dense ? RUN : x.columns();
        runs.xBytes = (long) (dense ? RUN : x.stride()) * x.type().bytes();
        runs.yBytes = (long) (dense ? RUN : y.stride()) * y.type().bytes();
        runs.elements = x.elements();
        rows(dense ? runs(x) : x.rows(), runs.length, runs);
    }

    private static final class Runs implements RowWork {
        private long x;
        private long y;
        private int length;
        private long elements;

        /** From one run to the next. */
        private long xBytes;

        private long yBytes;
        private RunWork work = (_, _, _, _) -> {};

        @Override
        public void run(int i) {
            int n = (int) Math.min(length, elements - (long) i * length);
            work.run(i, x + i * xBytes, y + i * yBytes, n);
        }
    }
}
