package dev.penstock.runtime.model.activations;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.List;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * A fixed number of slots lent to keys. Freed slots are lent again last in, first out, while they
 * are still in the caches. Pools of several stages may lend the same slots, each as what its stage
 * sees there: a slot that one has lent is idle for none.
 */
public final class SlotPool<T> {
    private final String content;
    private final List<T> slots;

    /** Indexes of slots that no pool has lent. */
    private final Deque<Integer> idle;

    /** The index of the slot that a key has. */
    private final List<@Nullable Integer> lent;

    /**
     * @param content what a slot holds, for errors
     * @param keys keys are 0 to {@code keys - 1}
     */
    public SlotPool(String content, List<T> slots, int keys) {
        this(
                content,
                slots,
                keys,
                new ArrayDeque<>(IntStream.range(0, slots.size()).boxed().toList()));
    }

    /**
     * @param idle indexes of slots, the same for all pools that lend them
     */
    public SlotPool(String content, List<T> slots, int keys, Deque<Integer> idle) {
        this.content = content;
        this.slots = List.copyOf(slots);
        this.idle = idle;
        lent = new ArrayList<>(Collections.<@Nullable Integer>nCopies(keys, null));
    }

    /**
     * Lends a slot.
     *
     * @throws IllegalStateException if none is idle: the order needs more than was proved
     */
    public T take(int key) {
        Integer slot = idle.poll();
        if (slot == null) {
            throw new IllegalStateException(
                    "all %d slots for %s are in use; the order holds more at a time than the stage's budget allows"
                            .formatted(slots.size(), content));
        }
        lent.set(key, slot);
        return slots.get(slot);
    }

    /** Returns the slot that was lent to a key. */
    public T get(int key) {
        return slots.get(index(key));
    }

    private int index(int key) {
        Integer slot = lent.get(key);
        if (slot == null) {
            throw new IllegalStateException(
                    "no slot for %s was taken under key %d; a backward must follow its forward"
                            .formatted(content, key));
        }
        return slot;
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
        idle.push(index(key));
        lent.set(key, null);
    }

    /** Same as {@link #free}, for a slot that is not empty yet: it is lent again last. */
    void freeLast(int key) {
        idle.addLast(index(key));
        lent.set(key, null);
    }

    /** Takes back all slots that this pool has lent: the step was abandoned. */
    public void freeAll() {
        for (int key = 0; key < lent.size(); key++) {
            if (lends(key)) {
                free(key);
            }
        }
    }
}
