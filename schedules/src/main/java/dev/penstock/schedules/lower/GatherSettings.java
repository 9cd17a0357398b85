package dev.penstock.schedules.lower;

/**
 * How ZeRO-3 parameters come and go.
 *
 * @param residency how long they stay
 * @param lookAhead how many computations ahead of the first that needs them they are gathered, so
 *     that the way takes place beside those; 0 gathers right before it is needed
 */
public record GatherSettings(ParameterResidency residency, int lookAhead) {
    public GatherSettings {
        if (lookAhead < 0) {
            throw new IllegalArgumentException(
                    "parameters are gathered 0 or more computations ahead, got " + lookAhead);
        }
    }

    /** One computation ahead, once per pass where the order allows it. */
    public static GatherSettings defaults() {
        return new GatherSettings(ParameterResidency.PER_PASS, 1);
    }
}
