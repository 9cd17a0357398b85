package dev.penstock.actors.collective.shared;

import dev.penstock.actors.collective.GroupRole;
import dev.penstock.actors.collective.OpenGroup;
import dev.penstock.actors.collective.RankWaits;
import dev.penstock.cuda.device.Kernels;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Where the members of groups find each other that live in one process. Owned by the process's node
 * and used by all its ranks, for one run. Any thread.
 */
public final class CollectiveRegistry {
    private record Key(int epoch, GroupRole role, List<Integer> ranks) {}

    private final Map<Key, MeetingRoom> rooms = new ConcurrentHashMap<>();

    /**
     * A rank's membership in a group whose members all live here; once per epoch.
     *
     * @param index of the rank among {@code ranks}
     * @param limit how long a wait inside an op may be
     */
    public OpenGroup join(
            int epoch,
            GroupRole role,
            List<Integer> ranks,
            int index,
            Kernels kernels,
            Duration limit,
            RankWaits waits) {
        rooms.keySet().removeIf(key -> key.epoch() < epoch);
        MeetingRoom room =
                rooms.computeIfAbsent(
                        new Key(epoch, role, List.copyOf(ranks)),
                        key -> new MeetingRoom(key.ranks()));
        return new SharedMemoryGroup(room, index, kernels, limit, waits);
    }
}
