package dev.penstock.cuda.cpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.concurrent.atomic.AtomicIntegerArray;
import org.junit.jupiter.api.Test;

class WorkerPoolTest {

    @Test
    void everyThreadDoesItsShareOncePerRun() {
        try (WorkerPool pool = new WorkerPool(3, "test")) {
            AtomicIntegerArray runs = new AtomicIntegerArray(3);
            for (int i = 0; i < 1000; i++) {
                pool.run(runs::incrementAndGet);
            }

            assertThat(runs).hasToString("[1000, 1000, 1000]");
        }
    }

    @Test
    void smallWorkStaysOnTheCaller() {
        try (WorkerPool pool = new WorkerPool(3, "test")) {
            Thread caller = Thread.currentThread();
            AtomicIntegerArray runs = new AtomicIntegerArray(3);

            pool.run(
                    10L,
                    thread -> {
                        assertThat(Thread.currentThread()).isSameAs(caller);
                        runs.incrementAndGet(thread);
                    });

            assertThat(runs).hasToString("[1, 1, 1]");
        }
    }

    @Test
    void whatAnyThreadThrowsReachesTheCallerAndThePoolWorksOn() {
        try (WorkerPool pool = new WorkerPool(2, "test")) {
            for (int failing = 0; failing < 2; failing++) {
                int thrower = failing;
                assertThatThrownBy(
                                () ->
                                        pool.run(
                                                thread -> {
                                                    if (thread == thrower) {
                                                        throw new IllegalStateException("broken");
                                                    }
                                                }))
                        .hasMessage("broken");
            }

            AtomicIntegerArray runs = new AtomicIntegerArray(2);
            pool.run(runs::incrementAndGet);
            assertThat(runs).hasToString("[1, 1]");
        }
    }

    @Test
    void closingEndsTheThreads() {
        WorkerPool pool = new WorkerPool(4, "ending");
        pool.run(_ -> {});

        pool.close();

        assertThat(Thread.getAllStackTraces().keySet())
                .noneMatch(thread -> thread.getName().startsWith("ending-"));
    }

    @Test
    void piecesCoverTheResultOnceWhateverTheThreads() {
        for (int threads = 1; threads <= 9; threads++) {
            for (int[] size : new int[][] {{1, 1}, {7, 500}, {50257, 768}, {33, 129}, {640, 64}}) {
                Pieces pieces = Pieces.of(size[0], size[1], threads);
                long covered = 0;
                for (int i = 0; i < pieces.count(); i++) {
                    long rows = pieces.endRow(i) - (long) pieces.firstRow(i);
                    covered += rows * (pieces.endColumn(i) - pieces.firstColumn(i));
                }

                assertThat(pieces.count()).isLessThanOrEqualTo(threads);
                assertThat(covered).isEqualTo((long) size[0] * size[1]);
            }
        }
    }
}
