package dev.penstock.actors.dataplane.aeron;

import dev.penstock.actors.dataplane.FrameRefusal;
import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;

/** Counts refused frames by reason. Counted by the poller, read by anyone. */
final class RefusalCounts {
    private final Map<FrameRefusal, AtomicLong> counts = new EnumMap<>(FrameRefusal.class);

    RefusalCounts() {
        for (FrameRefusal reason : FrameRefusal.values()) {
            counts.put(reason, new AtomicLong());
        }
    }

    /** Returns whether this was the first of its kind. */
    boolean count(FrameRefusal reason) {
        return counter(reason).getAndIncrement() == 0;
    }

    /** The reasons that occurred. */
    Map<FrameRefusal, Long> snapshot() {
        Map<FrameRefusal, Long> occurred = new EnumMap<>(FrameRefusal.class);
        counts.forEach(
                (reason, counter) -> {
                    if (counter.get() > 0) {
                        occurred.put(reason, counter.get());
                    }
                });
        return occurred;
    }

    private AtomicLong counter(FrameRefusal reason) {
        AtomicLong counter = counts.get(reason);
        if (counter == null) {
            throw new IllegalStateException("no counter for " + reason);
        }
        return counter;
    }
}
