package dev.penstock.runtime.model;

import dev.penstock.actors.collective.Collective;
import dev.penstock.actors.collective.CollectiveGroup;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;

/**
 * Where the backwards of a rank's stages add gradients that are sharded: a stage has its room from
 * the first that adds to the end of the sum over replicas. Free rows are zero.
 */
final class AccumulatorPool {
    private final RowPool rows;
    private final Deque<Collective> sums = new ArrayDeque<>();

    AccumulatorPool(RowPool rows) {
        this.rows = rows;
    }

    /**
     * Gives gradients their room, for which earlier sums may have to end first. Since all replicas
     * run the same program, each has begun those or will without waiting for this.
     */
    void open(List<GroupGradient> gradients, CollectiveGroup replicas) {
        List<GroupGradient> closed = gradients.stream().filter(g -> !g.isOpen()).toList();
        List<RowPool.Kind> wanted = closed.stream().map(GroupGradient::row).toList();
        while (!rows.has(wanted) && !sums.isEmpty()) {
            replicas.await(sums.remove());
        }
        closed.forEach(gradient -> gradient.open(rows));
    }

    /** A sum that gives rows back when it ends. */
    void underWay(Collective sum) {
        sums.add(sum);
    }

    void close(GroupGradient gradient) {
        gradient.close(rows);
    }

    /** A step begins: what was under way is over. */
    void forgetSums() {
        sums.clear();
    }
}
