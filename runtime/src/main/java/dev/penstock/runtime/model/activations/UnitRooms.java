package dev.penstock.runtime.model.activations;

import dev.penstock.cuda.device.DeviceBuffer;
import dev.penstock.cuda.device.DeviceScope;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;

/**
 * Room for what the stages of a rank keep of units, and the way of the rank to its host. Rooms of
 * the same kind are interchangeable: stages that share them hold as many at a time as the order of
 * the rank was proved to need, not each as many as itself.
 */
public final class UnitRooms {
    /**
     * What makes rooms interchangeable.
     *
     * @param content for names
     * @param bytes of the buffers of a room
     */
    public record Kind(String content, List<Long> bytes) {
        public Kind {
            bytes = List.copyOf(bytes);
        }
    }

    /** Memory for one unit at a time. */
    record Room(List<DeviceBuffer> buffers, UnderWay underWay) {}

    /**
     * Rooms of a kind.
     *
     * @param idle indexes of those that are lent to nobody, the next one first
     */
    record Rooms(List<Room> all, Deque<Integer> idle) {
        static Rooms allocate(DeviceScope scope, String owner, Kind kind, int count) {
            List<Room> rooms = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                String name = "%s%s, slot %d".formatted(kind.content(), owner, i);
                rooms.add(
                        new Room(
                                kind.bytes().stream()
                                        .map(bytes -> scope.allocate(name, bytes))
                                        .toList(),
                                new UnderWay()));
            }
            return new Rooms(rooms, new ArrayDeque<>(IntStream.range(0, count).boxed().toList()));
        }
    }

    private final HostLink link;
    private final Map<Kind, Integer> shared;
    private final Map<Kind, Rooms> ofRank = new HashMap<>();
    private final Set<Kind> wanted = new LinkedHashSet<>();

    private UnitRooms(Map<Kind, Integer> shared) {
        this.link = new HostLink();
        this.shared = Map.copyOf(shared);
    }

    /** Every stage has rooms of its own. */
    public static UnitRooms apart() {
        return new UnitRooms(Map.of());
    }

    /**
     * The stages of a rank share rooms.
     *
     * @param most by kind, how many are in use at a time; stages have those of other kinds apart
     */
    public static UnitRooms shared(Map<Kind, Integer> most) {
        return new UnitRooms(most);
    }

    /** Returns the kinds that were asked for and may be shared. */
    public Set<Kind> wanted() {
        return wanted;
    }

    HostLink link() {
        return link;
    }

    /**
     * Returns rooms of a kind, which the first stage that asks for them allocates.
     *
     * @param owner of those that are not shared, for names
     * @param own how many the stage needs if it does not share them
     */
    Rooms shareable(DeviceScope scope, String owner, Kind kind, int own) {
        wanted.add(kind);
        Integer most = shared.get(kind);
        return most == null
                ? Rooms.allocate(scope, owner, kind, own)
                : ofRank.computeIfAbsent(kind, _ -> Rooms.allocate(scope, "", kind, most));
    }
}
