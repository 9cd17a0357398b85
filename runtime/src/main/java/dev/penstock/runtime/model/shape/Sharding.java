package dev.penstock.runtime.model.shape;

import dev.penstock.actors.collective.ShardMap;
import dev.penstock.actors.spi.RankPlace;

/**
 * Which part of every group of parameters a rank holds of what (ZeRO). The part of one replica is
 * all there is: it is kept apart only where it is offloaded.
 *
 * @param stage 0 to 3: nothing, moments, gradients too, parameters too
 * @param replicas ranks that hold the same parameters
 * @param index of this rank among them
 */
public record Sharding(int stage, int replicas, int index) {
    public static final Sharding NONE = new Sharding(0, 1, 0);

    public static Sharding of(GptSettings settings, RankPlace place) {
        int replicas = settings.grid().data() * settings.grid().context();
        int index = place.data() * settings.grid().context() + place.context();
        boolean whole = replicas == 1 && settings.zero().offload().isEmpty();
        return whole ? NONE : new Sharding(settings.zero().stage(), replicas, index);
    }

    public boolean moments() {
        return stage >= 1;
    }

    public boolean gradients() {
        return stage >= 2 && replicas > 1;
    }

    public boolean parameters() {
        return stage >= 3;
    }

    /** Whether this rank speaks for the replicas where all of them hold the same. */
    public boolean speaks() {
        return moments() || index == 0;
    }

    public ShardMap map(long elements) {
        return new ShardMap(elements, replicas);
    }

    /** This rank's part of so many elements. */
    public Part part(long elements) {
        ShardMap map = map(elements);
        return new Part(map.from(index), map.to(index));
    }

    /** What this rank has moments for. */
    public Part held(long elements) {
        return moments() ? part(elements) : new Part(0, elements);
    }

    /**
     * Elements of a group.
     *
     * @param from the first
     * @param to one behind the last
     */
    public record Part(long from, long to) {
        public long count() {
            return to - from;
        }

        /** What it has in common with another, counted from that one's first element. */
        public Part within(long first, long count) {
            long start = Math.clamp(from - first, 0, count);
            return new Part(start, Math.max(start, Math.clamp(to - first, 0, count)));
        }
    }
}
