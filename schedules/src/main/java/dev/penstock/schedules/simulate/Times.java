package dev.penstock.schedules.simulate;

import java.util.Arrays;
import java.util.stream.IntStream;

/** Times in nanoseconds, appended one after another. */
final class Times {
    private long[] nanos = new long[8];
    private int size;

    static Times[] some(int count) {
        return IntStream.range(0, count).mapToObj(_ -> new Times()).toArray(Times[]::new);
    }

    void add(long time) {
        if (size == nanos.length) {
            nanos = Arrays.copyOf(nanos, 2 * size);
        }
        nanos[size++] = time;
    }

    long get(int index) {
        return nanos[index];
    }

    int size() {
        return size;
    }
}
