package dev.penstock.schedules.simulate.churn;

import java.util.OptionalDouble;

/**
 * Who goes where.
 *
 * @param joining where a peer goes that comes
 * @param everySeconds how often one peer moves from the stage with the most to the stage with the
 *     least, where that has at least two less; empty for never
 */
public record RebalancingRule(Joining joining, OptionalDouble everySeconds) {
    /** Where a joiner goes. */
    public enum Joining {
        /** To a stage that was drawn for it, whoever is there. */
        DRAWN,
        /** To the stage with the least peers. */
        LEAST
    }

    public RebalancingRule {
        if (everySeconds.isPresent() && !(everySeconds.getAsDouble() > 0)) {
            throw new IllegalArgumentException(
                    "peers move every so many seconds, got " + everySeconds.getAsDouble());
        }
    }

    /** Nobody moves. */
    public static RebalancingRule never(Joining joining) {
        return new RebalancingRule(joining, OptionalDouble.empty());
    }

    /** One peer moves so often. */
    public static RebalancingRule every(Joining joining, double seconds) {
        return new RebalancingRule(joining, OptionalDouble.of(seconds));
    }
}
