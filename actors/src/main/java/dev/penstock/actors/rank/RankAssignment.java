package dev.penstock.actors.rank;

import dev.penstock.actors.serialization.WireMessage;

/**
 * How a rank comes to live in a process.
 *
 * @param start where its parameters come from
 * @param links of the run's epoch at that time
 */
public record RankAssignment(int rank, StateSource start, EpochLinks links) implements WireMessage {
    public int epoch() {
        return links.epoch();
    }
}
