package dev.penstock.runtime.model.activations;

import org.jspecify.annotations.Nullable;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.List;

/**
 * A fixed number of slots lent to keys. Freed slots are lent again last in, first out, while they
 * are still in the caches.
 */
public final class SlotPool<T> {
    private final String content;
    private final List<T> slots;
    private final Deque<T> idle;
    private final List<@Nullable T> lent;

    /**
     * @param content what a slot holds, for errors
     * @param keys keys are 0 to {@code keys - 1}
     */
    public SlotPool(String content, List<T> slots, int keys) {
        this.content = content;
        this.slots = List.copyOf(slots);
        idle = new ArrayDeque<>(slots);
        lent = new ArrayList<>(Collections.<@Nullable T>nCopies(keys, null));
    }

    /**
     * Lends a slot.
     *
     * @throws IllegalStateException if none is idle: the order needs more than was proved
     */
    public T take(int key) {
        T slot = idle.poll();
        if (slot == null) {
            throw new IllegalStateException(
                    "all %d slots for %s are in use; the order holds more at a time than the stage's budget allows"
                            .formatted(slots.size(), content));
        }
        lent.set(key, slot);
        return slot;
    }

    /** Returns the slot that was lent to a key. */
    public T get(int key) {
        T slot = lent.get(key);
        if (slot == null) {
            throw new IllegalStateException(
                    "no slot for %s was taken under key %d; a backward must follow its forward"
                            .formatted(content, key));
        }
        return slot;
    }

    int size() {
        return slots.size();
    }

    /** Returns any of the slots, which are alike. */
    T first() {
        return slots.getFirst();
    }

    /** Returns whether a key has a slot. */
    boolean lends(int key) {
        return lent.get(key) != null;
    }

    /** Takes a slot back. */
    public void free(int key) {
        idle.push(get(key));
        lent.set(key, null);
    }

    /** Same as {@link #free}, for a slot that is not empty yet: it is lent again last. */
    void freeLast(int key) {
        idle.addLast(get(key));
        lent.set(key, null);
    }

    /** Takes all slots back: the step was abandoned. */
    void freeAll() {
        idle.clear();
        idle.addAll(slots);
        Collections.fill(lent, null);
    }
}
