package dev.penstock.runtime.adapt;

import dev.penstock.schedules.simulate.MeasuredMeans;
import dev.penstock.schedules.simulate.ProfileLine;
import dev.penstock.schedules.simulate.Timeline;
import java.util.ArrayList;
import java.util.List;

/**
 * What computations took.
 *
 * @param stages means over all ranks that hold a stage
 * @param ranks where replicas share micro-batches, entry r is of rank r alone, empty if it did
 *     none; else there are no entries
 */
record Measured(List<ProfileLine> stages, List<List<ProfileLine>> ranks) {
    Measured {
        stages = List.copyOf(stages);
        ranks = ranks.stream().map(List::copyOf).toList();
    }

    /** Of ranks that all run the same order. */
    Measured(List<ProfileLine> stages) {
        this(stages, List.of());
    }

    /** Gathers it from steps, of which the medians count. Confined to one thread. */
    static final class Steps {
        private final MeasuredMeans stages = new MeasuredMeans();
        private final List<MeasuredMeans> ranks = new ArrayList<>();
        private int count;

        /**
         * Adds a step.
         *
         * @param pipelines that ran the same program in it
         */
        void add(List<Timeline> pipelines) {
            stages.add(pipelines);
            count++;
            Timeline first = pipelines.getFirst();
            if (first.schedule().placement().wiring().isEmpty()) {
                return;
            }
            for (int rank = 0; rank < first.schedule().shape().ranks(); rank++) {
                if (ranks.size() == rank) {
                    ranks.add(new MeasuredMeans());
                }
                ranks.get(rank).addRank(first, rank);
            }
        }

        int count() {
            return count;
        }

        Measured medians() {
            return new Measured(stages.lines(), ranks.stream().map(MeasuredMeans::lines).toList());
        }
    }
}
