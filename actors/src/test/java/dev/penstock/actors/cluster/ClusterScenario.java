package dev.penstock.actors.cluster;

import dev.penstock.actors.simulation.World;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Random;

/**
 * A cluster, the runs that its users want, and what goes wrong in it.
 *
 * @param seeds that there are; one keeps the runs, the others wait to take its place
 * @param proofs whether a death is seen at once on the seed's host, and not by silence only
 * @param slow whether some messages take seconds
 * @param slowJoins whether a node takes long to build its share
 * @param mirrors whether ranks may go to a neighbour's process
 * @param keptLocks whether a file server keeps the locks of a seed that died for a while
 */
record ClusterScenario(
        List<Place> places,
        int seeds,
        List<Wanted> wanted,
        boolean proofs,
        boolean slow,
        boolean slowJoins,
        boolean mirrors,
        List<Harm> harms,
        boolean keptLocks) {
    /** Where a node runs, and what it offers. */
    record Place(String name, String host, int gib, long joinsAt) {}

    /**
     * A run that somebody submits.
     *
     * @param stepNanos how long a step takes
     * @param apartCostsMore whether the first rank on a node holds twice as much as the others
     * @param stopsAt when its user stops it; never if 0
     */
    record Wanted(
            String name,
            int ranks,
            long at,
            int steps,
            long stepNanos,
            boolean oneHost,
            int ranksPerNode,
            boolean apartCostsMore,
            long stopsAt) {}

    /** Something that goes wrong at some time. */
    record Harm(long at, Kind kind) {}

    /** What goes wrong; chance picks the victim. */
    enum Kind {
        KILL_NODE,
        KILL_SEED,
        PAUSE_NODE,
        PAUSE_SEED,
        CUT_NODE,
        CUT_SEED,
        LOST_MESSAGES_OF_NODE,
        LOST_MESSAGES_OF_SEED,
        ALL_MESSAGES_LOST,
        FALSE_DEATH,
        LATE_LAST_WORDS,
        DRIVER_DEATH,
        NO_DRIVER,
        SHARE_REFUSED,
        RANKS_REFUSED,
        RANK_ENDS,
        REBALANCE
    }

    /** By then nothing goes wrong any more. */
    static final long LAST_HARM = 150 * World.SECOND;

    private static final long SECOND = World.SECOND;

    static ClusterScenario of(long seed) {
        var random = new Random(seed * 31 + 7);
        List<Place> places = new ArrayList<>();
        int nodes = 2 + random.nextInt(3);
        for (int i = 0; i < nodes; i++) {
            String host = "host-" + (random.nextBoolean() ? i : random.nextInt(nodes));
            long joins = random.nextInt(3) == 0 ? span(random, 60) : span(random, 2);
            places.add(new Place("n" + i, host, 1 + random.nextInt(3), joins));
        }
        int room = places.stream().mapToInt(Place::gib).sum();
        List<Wanted> wanted = new ArrayList<>();
        int runs = 1 + random.nextInt(4);
        for (int i = 0; i < runs; i++) {
            boolean oneHost = random.nextInt(5) == 0;
            int ranks = Math.max(2, Math.min(room, 2 + random.nextInt(3)));
            wanted.add(
                    new Wanted(
                            "r" + i,
                            ranks,
                            span(random, random.nextBoolean() ? 10 : 120),
                            3 + random.nextInt(6),
                            SECOND + span(random, 15),
                            oneHost,
                            !oneHost && random.nextInt(5) == 0 ? 2 : 0,
                            random.nextInt(4) == 0,
                            random.nextInt(5) == 0 ? 20 * SECOND + span(random, 120) : 0));
        }
        return new ClusterScenario(
                places,
                1 + random.nextInt(3),
                wanted,
                random.nextBoolean(),
                random.nextInt(3) == 0,
                random.nextInt(3) == 0,
                random.nextBoolean(),
                harms(random),
                random.nextInt(3) == 0);
    }

    /** The same cluster in which harm of these kinds only happens, and often. */
    ClusterScenario with(List<Kind> kinds, long seed) {
        return new ClusterScenario(
                places,
                seeds,
                wanted,
                proofs,
                slow,
                slowJoins,
                mirrors,
                harms(new Random(seed), kinds, 12),
                keptLocks);
    }

    /** Of some kinds only: one that happens often may hide what another does. */
    private static List<Harm> harms(Random random) {
        List<Kind> kinds = new ArrayList<>();
        for (Kind kind : Kind.values()) {
            if (random.nextInt(5) < 2) {
                kinds.add(kind);
            }
        }
        return harms(random, kinds, kinds.isEmpty() ? 0 : random.nextInt(13));
    }

    private static List<Harm> harms(Random random, List<Kind> kinds, int count) {
        List<Harm> harms = new ArrayList<>();
        long at = span(random, 20);
        for (int i = 0; i < count && at < LAST_HARM; i++) {
            harms.add(new Harm(at, kinds.get(random.nextInt(kinds.size()))));
            at += random.nextBoolean() ? span(random, 2) : span(random, 40);
        }
        harms.sort(Comparator.comparingLong(Harm::at));
        return harms;
    }

    private static long span(Random random, int seconds) {
        return (long) (random.nextDouble() * seconds * SECOND);
    }
}
