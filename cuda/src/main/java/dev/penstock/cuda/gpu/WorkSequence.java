package dev.penstock.cuda.gpu;

import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.Set;

/** Work for a stream, one after the other: two of equal content do the same. */
final class WorkSequence {
    private static final int FIRST_ROOM = 64;
    private static final long HASH_FACTOR = 0x9E3779B97F4A7C15L;

    private StreamWork[] works = new StreamWork[FIRST_ROOM];
    private int[] starts = new int[FIRST_ROOM];
    private long[] numbers = new long[FIRST_ROOM * FIRST_ROOM];
    private int size;
    private int used;
    private long hash;

    /** Adds work that takes so many of these numbers. */
    void add(StreamWork work, long[] from, int count) {
        if (size == works.length) {
            works = Arrays.copyOf(works, 2 * size);
            starts = Arrays.copyOf(starts, 2 * size);
        }
        if (used + count > numbers.length) {
            numbers = Arrays.copyOf(numbers, 2 * numbers.length);
        }
        works[size] = work;
        starts[size++] = used;
        hash = (hash ^ System.identityHashCode(work)) * HASH_FACTOR;
        for (int i = 0; i < count; i++) {
            numbers[used++] = from[i];
            hash = Long.rotateLeft(hash ^ from[i], 23) * HASH_FACTOR;
        }
    }

    int size() {
        return size;
    }

    /** Equal for equal contents, and hardly ever for others. */
    long hash() {
        return hash;
    }

    boolean hasContentOf(WorkSequence other) {
        return Arrays.equals(works, 0, size, other.works, 0, other.size)
                && Arrays.equals(starts, 0, size, other.starts, 0, other.size)
                && Arrays.equals(numbers, 0, used, other.numbers, 0, other.used);
    }

    /** Gives all of it to the stream, in order. */
    void give() {
        for (int i = 0; i < size; i++) {
            works[i].give(numbers, starts[i]);
        }
    }

    /** What it consists of, each kind once. */
    Set<String> names() {
        Set<String> names = new LinkedHashSet<>();
        for (int i = 0; i < size; i++) {
            names.add(works[i].name());
        }
        return names;
    }

    WorkSequence copy() {
        var copy = new WorkSequence();
        copy.works = Arrays.copyOf(works, size);
        copy.starts = Arrays.copyOf(starts, size);
        copy.numbers = Arrays.copyOf(numbers, used);
        copy.size = size;
        copy.used = used;
        copy.hash = hash;
        return copy;
    }

    void clear() {
        size = 0;
        used = 0;
        hash = 0;
    }
}
