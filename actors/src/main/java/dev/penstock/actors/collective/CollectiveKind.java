package dev.penstock.actors.collective;

/** What members do together. */
public enum CollectiveKind {
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
    public boolean sums() {
        return sums;
    }

    /** Whether every member's part goes to all others. */
    public boolean gathers() {
        return gathers;
    }

    @Override
    public String toString() {
        return text;
    }
}
