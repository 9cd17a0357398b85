package dev.penstock.actors.collective;

/** What members do together. */
enum CollectiveKind {
    REDUCE_SCATTER("reduce-scatter", true, false),
    ALL_GATHER("all-gather", false, true),
    ALL_REDUCE("all-reduce", true, true),
    PASS("pass", false, false);

    private final String text;
    private final boolean sums;
    private final boolean gathers;

    CollectiveKind(String text, boolean sums, boolean gathers) {
        this.text = text;
        this.sums = sums;
        this.gathers = gathers;
    }

    /** Whether every member's part becomes a sum. */
    boolean sums() {
        return sums;
    }

    /** Whether every member's part goes to all others. */
    boolean gathers() {
        return gathers;
    }

    /** Bytes that a member sends for a sum or a gather. */
    long sentBytes(ShardMap map, int member, int elementBytes) {
        long scattered = sums ? map.elements() - map.count(member) : 0;
        long gathered = gathers ? map.count(member) * (map.parts() - 1) : 0;
        return (scattered + gathered) * elementBytes;
    }

    @Override
    public String toString() {
        return text;
    }
}
