package dev.penstock.actors.rank;

import dev.penstock.actors.serialization.WireMessage;

/**
 * The assignment of a rank to a process.
 *
 * @param start where its parameters come from
 * @param links those of the run's epoch at that time
 */
public record RankAssignment(int rank, StateSource start, EpochLinks links) implements WireMessage {
    public int epoch() {
        return links.epoch();
    }
}
