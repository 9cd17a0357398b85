package dev.penstock.cuda.cpu;

import dev.penstock.cuda.memory.Scratch;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Runs attention head by head over all threads of the pool. A head is taken by whichever thread is
 * free, and all of it runs there: its bits do not depend on the thread.
 */
final class AttentionHeads {
    /** All blocks of one head. */
    @FunctionalInterface
    interface Work {
        void run(AttentionPass pass, int head);
    }

    private final WorkerPool pool;
    private final AttentionPass[] passes;

    /**
     * @param scratch one per thread
     * @param adds see {@link AttentionPass}
     */
    AttentionHeads(WorkerPool pool, MatrixProduct library, Scratch[] scratch, boolean adds) {
        this.pool = pool;
        this.passes = new AttentionPass[scratch.length];
        for (int thread = 0; thread < passes.length; thread++) {
            passes[thread] = new AttentionPass(library, thread, scratch[thread], adds);
        }
    }

    /**
     * Runs all heads.
     *
     * @param elements how much there is to do, for the choice of threads
     * @param squares how many blocks of scores a pass needs: 1 forward, 2 backward
     * @param mostKeys keys of the largest block
     * @param extraBytes room of the caller behind the scores
     */
    void run(int heads, long elements, int squares, int mostKeys, int extraBytes, Work work) {
        for (AttentionPass pass : passes) {
            pass.begin(squares, mostKeys, extraBytes);
        }
        AtomicInteger next = new AtomicInteger();
        pool.run(
                elements,
                thread -> {
                    for (int i = next.getAndIncrement(); i < heads; i = next.getAndIncrement()) {
                        work.run(passes[thread], i);
                    }
                });
    }
}
