package dev.penstock.runtime.adapt;

import dev.penstock.schedules.simulate.MeasuredMeans;
import dev.penstock.schedules.simulate.ProfileLine;
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

    static Measured of(MeasuredMeans steps) {
        return new Measured(steps.lines(), steps.ofRanks());
    }
}
