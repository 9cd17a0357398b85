package dev.penstock.schedules.lower;

import java.util.Set;

/**
 * Which activations go to the host between forward and backward, and when they come back.
 *
 * @param stages whose units are offloaded; empty for all stages
 * @param lookAhead how many computations before its backward a unit is brought back, so that the
 *     way takes place beside those; 0 brings it back right before
 */
public record OffloadSettings(Set<Integer> stages, int lookAhead) {
    public OffloadSettings {
        stages = Set.copyOf(stages);
        if (lookAhead < 0) {
            throw new IllegalArgumentException(
                    "activations come back 0 or more computations ahead, got " + lookAhead);
        }
    }

    boolean offloads(int stage) {
        return stages.isEmpty() || stages.contains(stage);
    }
}
