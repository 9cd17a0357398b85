package dev.penstock.schedules.plan;

/**
 * How long a search may go on.
 *
 * @param plans how many of the best plans are wanted
 * @param ops how many ops may be judged and simulated once there is a plan
 * @param choices how many choices may be looked at
 */
public record SearchLimits(int plans, long ops, long choices) {
    public SearchLimits {
        if (plans < 1 || ops < 1 || choices < 1) {
            throw new IllegalArgumentException(
                    "a search needs limits of 1 or more, got %d plans, %d ops, %d choices"
                            .formatted(plans, ops, choices));
        }
    }

    /** Some seconds, at most about a minute, on one core. */
    public static SearchLimits interactive(int plans) {
        return new SearchLimits(plans, 12_000_000, 1_500_000);
    }
}
