package dev.penstock.runtime.model.parameters;

import dev.penstock.actors.collective.Collective;
import dev.penstock.actors.collective.CollectiveGroup;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;

/**
 * Room in which the backwards of a rank's stages add gradients that are sharded: a stage has its
 * room from its first backward to the end of the sum over replicas. Free rows are zero.
 */
public final class AccumulatorPool {
    private final RowPool rows;
    private final Deque<Collective> sums = new ArrayDeque<>();

    public AccumulatorPool(RowPool rows) {
        this.rows = rows;
    }

    /**
     * Gives gradients their room, for which earlier sums may have to finish first. Since all
     * replicas run the same program, each has begun those sums or will begin them without waiting
     * for this one. This returns as soon as there is room, whatever else is being summed: replicas
     * that found room may be waiting for this one in a sum of shards, and then they advance no sum
     * over replicas.
     */
    public void open(List<GroupGradient> gradients, CollectiveGroup replicas) {
        List<GroupGradient> closed = gradients.stream().filter(g -> !g.isOpen()).toList();
        List<RowPool.Kind> wanted = closed.stream().map(GroupGradient::row).toList();
        if (!rows.has(wanted)) {
            replicas.await(new Room(wanted));
        }
        closed.forEach(gradient -> gradient.open(rows));
    }

    /** Finishes when rows are free, or no sum is left that could free them. */
    private final class Room implements Collective {
        private final List<RowPool.Kind> wanted;

        Room(List<RowPool.Kind> wanted) {
            this.wanted = wanted;
        }

        @Override
        public boolean advance() {
            sums.removeIf(Collective::advance);
            return rows.has(wanted) || sums.isEmpty();
        }

        @Override
        public String describe() {
            return sums.isEmpty() ? "nothing" : sums.getFirst().describe();
        }
    }

    /** Takes note of a sum that gives rows back when it finishes. */
    public void underWay(Collective sum) {
        sums.add(sum);
    }

    void close(GroupGradient gradient) {
        gradient.close(rows);
    }

    /** A step begins: no sum is in flight any more. */
    public void forgetSums() {
        sums.clear();
    }
}
