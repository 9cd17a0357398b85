package dev.penstock.schedules.simulate;

import dev.penstock.schedules.ir.Op;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The tensors that one rank gives to one other, in their order on the link. */
final class LinkLog {
    /**
     * A tensor on the link.
     *
     * @param position the op that gave it, on the sending rank
     * @param given when
     * @param from when the link was free for it
     * @param to when it left the link
     */
    record Entry(int position, Op op, long given, long from, long to, int index) {}

    private final List<Entry> entries = new ArrayList<>();
    private final Map<Integer, Entry> byTensor = new HashMap<>();

    /** Adds the next tensor, unless it was there before. */
    void add(int tensor, int position, Op op, long given, long occupancy) {
        if (!byTensor.containsKey(tensor)) {
            long from = entries.isEmpty() ? given : Math.max(given, entries.getLast().to());
            var entry = new Entry(position, op, given, from, from + occupancy, entries.size());
            entries.add(entry);
            byTensor.put(tensor, entry);
        }
    }

    @Nullable Entry of(int tensor) {
        return byTensor.get(tensor);
    }

    Entry before(Entry entry) {
        return entries.get(entry.index() - 1);
    }
}
