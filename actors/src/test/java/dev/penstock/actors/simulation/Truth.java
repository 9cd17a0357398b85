package dev.penstock.actors.simulation;

import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;

/** Loss bits, held-out losses and states of a run; of an undisturbed one, what all others equal. */
final class Truth {
    final Map<Long, Double> losses = new TreeMap<>();
    final Map<Long, Double> heldOut = new TreeMap<>();
    private final Map<Integer, TreeMap<Long, Long>> states = new HashMap<>();

    void state(int stage, long step, long bits) {
        states.computeIfAbsent(stage, _ -> new TreeMap<>()).put(step, bits);
    }

    /** After a step; a step that was left out changed nothing. */
    long state(int stage, long step) {
        var entry = states.getOrDefault(stage, new TreeMap<>()).floorEntry(step);
        return entry == null ? SimStage.firstBits(stage) : entry.getValue();
    }
}
