package dev.penstock.runtime.model.parameters;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Tensor;
import java.util.ArrayDeque;
import java.util.Collection;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Dense rows that the stages of a rank use in turns, all of them allocated when the stages are
 * built: as many of each kind as are in use at a time.
 */
public final class RowPool {
    /** Rows of the same kind are interchangeable. */
    public record Kind(DType type, long elements) {}

    /** The maximum number of rows in use at a time. */
    public static final class Needs {
        private final Map<Kind, Integer> most = new LinkedHashMap<>();

        /** Takes note of rows that are in use together. */
        public void together(Collection<Kind> rows) {
            Map<Kind, Integer> count = new LinkedHashMap<>();
            rows.forEach(kind -> count.merge(kind, 1, Integer::sum));
            count.forEach((kind, n) -> most.merge(kind, n, Math::max));
        }
    }

    private final Map<Kind, Deque<Tensor>> free = new HashMap<>();

    public RowPool(DeviceScope scope, String name, Needs needs) {
        needs.most.forEach(
                (kind, n) -> {
                    Deque<Tensor> rows = new ArrayDeque<>();
                    for (int i = 0; i < n; i++) {
                        int elements = Math.toIntExact(kind.elements());
                        rows.add(scope.tensor(name, kind.type(), 1, elements));
                    }
                    free.put(kind, rows);
                });
    }

    /** Returns whether all of these can be taken. */
    boolean has(List<Kind> rows) {
        Map<Kind, Integer> count = new HashMap<>();
        rows.forEach(kind -> count.merge(kind, 1, Integer::sum));
        return count.entrySet().stream()
                .allMatch(
                        wanted -> {
                            Deque<Tensor> left = free.get(wanted.getKey());
                            return left != null && left.size() >= wanted.getValue();
                        });
    }

    /**
     * Takes a row.
     *
     * @param what names its user, in messages
     */
    public Tensor take(Kind kind, String what) {
        Deque<Tensor> rows = free.get(kind);
        Tensor row = rows == null ? null : rows.poll();
        if (row == null) {
            throw new IllegalStateException(
                    "no room for %s: more is held at a time than planned".formatted(what));
        }
        return row;
    }

    /** Gives a row back, which must be zero. */
    public void giveBack(Tensor row) {
        Deque<Tensor> rows = free.get(new Kind(row.type(), row.elements()));
        if (rows == null) {
            throw new IllegalArgumentException("row belongs to another pool: " + row);
        }
        rows.push(row);
    }
}
