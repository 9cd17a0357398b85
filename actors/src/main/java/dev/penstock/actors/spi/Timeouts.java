package dev.penstock.actors.spi;

import java.time.Duration;

/**
 * Deadlines. No wait of a run is without one.
 *
 * @param lease a rank that says nothing for this long is taken for dead, unless its process is seen
 *     to get no processor
 * @param stallReport a wait this long is explained to the user
 * @param stallLimit after a wait of all ranks this long they are asked anew, in another epoch
 * @param start all ranks must be ready within this
 * @param stop all ranks must be stopped within this
 */
public record Timeouts(
        Duration lease, Duration stallReport, Duration stallLimit, Duration start, Duration stop) {
    public static final Timeouts DEFAULT =
            new Timeouts(
                    Duration.ofSeconds(3),
                    Duration.ofSeconds(5),
                    Duration.ofSeconds(60),
                    Duration.ofSeconds(60),
                    Duration.ofSeconds(30));
}
