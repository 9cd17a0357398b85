package dev.penstock.runtime.model;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Tensor;
import java.util.ArrayDeque;
import java.util.Collection;
import java.util.Deque;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Room for gathered groups, allocated when the stage is built: for as many of each kind as are
 * there at a time.
 */
final class GatherPool {
    /** Groups of one kind fit into the same rooms. */
    private record Kind(long elements, boolean weights, boolean copies) {
        static Kind of(ParameterGroup group) {
            return new Kind(group.elements(), group.readsWeights(), group.hasCopies());
        }
    }

    private record Room(@Nullable Tensor weights, @Nullable Tensor copies) {}

    private final Map<Kind, Deque<Room>> free = new HashMap<>();
    private final Map<ParameterGroup, Room> taken = new IdentityHashMap<>();

    /**
     * @param together sets of groups that are there at a time
     */
    GatherPool(DeviceScope scope, List<? extends Collection<ParameterGroup>> together) {
        Map<Kind, Integer> most = new HashMap<>();
        for (Collection<ParameterGroup> groups : together) {
            Map<Kind, Integer> count = new HashMap<>();
            groups.forEach(group -> count.merge(Kind.of(group), 1, Integer::sum));
            count.forEach((kind, n) -> most.merge(kind, n, Math::max));
        }
        most.forEach(
                (kind, n) -> {
                    Deque<Room> rooms = new ArrayDeque<>();
                    for (int i = 0; i < n; i++) {
                        rooms.add(room(scope, kind));
                    }
                    free.put(kind, rooms);
                });
    }

    private static Room room(DeviceScope scope, Kind kind) {
        int elements = Math.toIntExact(kind.elements());
        return new Room(
                kind.weights() ? scope.tensor("gathered", DType.F32, 1, elements) : null,
                kind.copies() ? scope.tensor("gathered bf16", DType.BF16, 1, elements) : null);
    }

    void bind(ParameterGroup group) {
        Deque<Room> rooms = free.get(Kind.of(group));
        Room room = rooms == null ? null : rooms.poll();
        if (room == null) {
            throw new IllegalStateException(
                    "no room to gather %s: more is held at a time than was planned"
                            .formatted(group.name()));
        }
        taken.put(group, room);
        if (room.weights() != null) {
            group.weights().bind(room.weights());
        }
        if (room.copies() != null) {
            group.factors().bind(room.copies());
        }
    }

    void free(ParameterGroup group) {
        Room room = taken.remove(group);
        Deque<Room> rooms = free.get(Kind.of(group));
        if (room != null && rooms != null) {
            group.weights().unbind();
            group.factors().unbind();
            rooms.push(room);
        }
    }
}
