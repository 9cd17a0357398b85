package dev.penstock.actors.mirror;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The mirrors of a process, by holder and mirrored rank. Owned by the process's node and used by
 * all its shards: published and withdrawn by the holder, found by a rank that takes over. From any
 * thread; a mirror that was found may be closed by its holder, which its own lock settles.
 */
public final class MirrorRegistry {
    private record Key(int holder, int rank) {}

    private final Map<Key, HeldMirror> mirrors = new ConcurrentHashMap<>();

    void publish(int holder, HeldMirror mirror) {
        mirrors.put(new Key(holder, mirror.rank()), mirror);
    }

    void withdraw(int holder, HeldMirror mirror) {
        mirrors.remove(new Key(holder, mirror.rank()), mirror);
    }

    /**
     * The mirror of a rank.
     *
     * @throws IllegalStateException if that holder has none in this process
     */
    public HeldMirror find(int holder, int rank) {
        HeldMirror found = mirrors.get(new Key(holder, rank));
        if (found == null) {
            throw new IllegalStateException(
                    "rank %d cannot start from its mirror: rank %d of this process holds none; here are %s"
                            .formatted(rank, holder, mirrors.keySet()));
        }
        return found;
    }
}
