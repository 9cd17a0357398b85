package dev.penstock.actors.simulation;

import java.util.concurrent.TimeUnit;

/**
 * The clocks of a process, of which none need agree with another's: one that never goes back, from
 * a beginning of its own and at a speed of its own, and one for the time of day, which somebody has
 * set.
 *
 * @param speed how fast the first one runs
 * @param aheadMs by how much the time of day is wrong
 */
record SimClock(long beginNanos, double speed, long aheadMs) {
    private static final SimClock RIGHT = new SimClock(0, 1, 0);
    private static final long HOURS = 7_200_000;

    static SimClock right() {
        return RIGHT;
    }

    static SimClock any(World world) {
        return new SimClock(
                world.between(-1_000 * World.SECOND, 1_000 * World.SECOND),
                world.between(970, 1_030) / 1_000.0,
                world.between(-HOURS, HOURS));
    }

    long now(World world) {
        return beginNanos + (long) (world.now() * speed);
    }

    /** How long it takes until this clock has gone so far. */
    long until(long nanos) {
        return (long) (nanos / speed);
    }

    /** What the time of day was when the other clock was at 0. */
    long worldClockMs(World world) {
        return aheadMs + TimeUnit.NANOSECONDS.toMillis(world.now() - now(world));
    }
}
