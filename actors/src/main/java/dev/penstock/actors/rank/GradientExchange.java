package dev.penstock.actors.rank;

import dev.penstock.actors.dataplane.Endpoint;

/** Replaces a gradient that several stages share by its sum, on all of them, once per step. */
interface GradientExchange {
    /** Starts over for the next step. */
    void begin();

    /** Does a part of the work; {@link Progress#DONE} when nothing is left to do for this stage. */
    Progress advance(Endpoint endpoint, long pass);

    /** Returns the bytes sent to other ranks since the step began. */
    default long sentBytes() {
        return 0;
    }
}
