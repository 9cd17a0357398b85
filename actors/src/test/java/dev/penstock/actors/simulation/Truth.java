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

    /** By the last update before, of replicas that take steps alone. */
    private final Map<Integer, Map<Long, ByteBuffer>> exchanged = new HashMap<>();

    void state(int part, long step, ByteBuffer bits) {
        states.computeIfAbsent(part, _ -> new TreeMap<>()).put(step, bits);
    }

    void exchanged(int part, long step, ByteBuffer bits) {
        exchanged.computeIfAbsent(part, _ -> new HashMap<>()).put(updated(part, step), bits);
    }

    /** The last step up to this one that was not left out. */
    private long updated(int part, long step) {
        return Objects.requireNonNull(states.get(part)).floorKey(step);
    }

    /**
     * After what was exchanged has been applied, before the next step; of a step without that, what
     * {@link #state} is.
     */
    ByteBuffer settled(int part, long step) {
        ByteBuffer other = exchanged.getOrDefault(part, Map.of()).get(updated(part, step));
        return other == null ? state(part, step) : other;
    }

    /** After a step; a step that was left out changed nothing. */
    ByteBuffer state(int part, long step) {
        return Objects.requireNonNull(states.get(part)).floorEntry(step).getValue();
    }
}
