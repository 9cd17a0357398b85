package dev.penstock.actors.simulation;

import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;

/** Loss bits, held-out losses and states of a run; of an undisturbed one, what all others equal. */
final class Truth {
    final Map<Long, Double> losses = new TreeMap<>();
    final Map<Long, Double> heldOut = new TreeMap<>();
    private final Map<Integer, TreeMap<Long, ByteBuffer>> states = new HashMap<>();

    void state(int part, long step, ByteBuffer bits) {
        states.computeIfAbsent(part, _ -> new TreeMap<>()).put(step, bits);
    }

    /** After a step; a step that was left out changed nothing. */
    ByteBuffer state(int part, long step) {
        return Objects.requireNonNull(states.get(part)).floorEntry(step).getValue();
    }
}
