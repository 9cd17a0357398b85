package dev.penstock.actors.collective.shared;

import dev.penstock.actors.collective.CollectiveKind;
import dev.penstock.actors.collective.ShardMap;
import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.cuda.device.DType;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.locks.LockSupport;

/**
 * Where the members of a group meet that live in one process, for an epoch. Whoever reads or writes
 * another's tensor says so, and whoever leaves, after which its memory may be freed, waits for
 * those that do. Any thread.
 */
final class MeetingRoom {
    private static final int NOBODY = -1;
    private static final int KINDS = CollectiveKind.values().length;
    private static final long NAP_NANOS = 20_000;

    private final List<Integer> ranks;
    private final Map<Long, Meeting> meetings = new ConcurrentHashMap<>();
    private final AtomicIntegerArray touching;

    /** By member and kind. */
    private final AtomicLongArray sentBytes;

    private volatile int left = NOBODY;

    MeetingRoom(List<Integer> ranks) {
        this.ranks = List.copyOf(ranks);
        this.touching = new AtomicIntegerArray(ranks.size());
        this.sentBytes = new AtomicLongArray(ranks.size() * KINDS);
    }

    List<Integer> ranks() {
        return ranks;
    }

    Meeting meeting(long number, CollectiveKind kind, ShardMap map, DType type) {
        return meetings.computeIfAbsent(number, _ -> new Meeting(kind, map, type));
    }

    /** Nobody needs it any more; each member that is done may say so. */
    void adjourn(long number) {
        meetings.remove(number);
    }

    /** Something that is done with others' tensors. */
    void touch(int member, Runnable work) {
        touching.set(member, 1);
        try {
            failIfAnyLeft();
            work.run();
        } finally {
            touching.set(member, 0);
        }
    }

    /** Somebody else read so many bytes of a member's tensor. */
    void countSent(int member, CollectiveKind kind, long bytes) {
        sentBytes.addAndGet(member * KINDS + kind.ordinal(), bytes);
    }

    long sentBytes(int member, CollectiveKind kind) {
        return sentBytes.get(member * KINDS + kind.ordinal());
    }

    void failIfAnyLeft() {
        int gone = left;
        if (gone != NOBODY) {
            throw new DataPlaneException(
                    "rank %d left the collectives of ranks %s".formatted(gone, ranks));
        }
    }

    /** Returns when nobody touches this member's tensors any more, nor ever will. */
    void leave(int member, Duration limit) {
        if (left == NOBODY) {
            left = ranks.get(member);
        }
        long begun = System.nanoTime();
        for (int other = 0; other < ranks.size(); other++) {
            while (other != member && touching.get(other) != 0) {
                if (System.nanoTime() - begun > limit.toNanos()) {
                    throw new DataPlaneException(
                            "rank %d cannot leave the collectives of ranks %s: rank %d still adds"
                                    .formatted(ranks.get(member), ranks, ranks.get(other)));
                }
                LockSupport.parkNanos(NAP_NANOS);
            }
        }
    }
}
