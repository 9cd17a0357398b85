package dev.penstock.schedules.simulate;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.OpPlace;
import java.util.Optional;

/**
 * A rank that stands still for ever.
 *
 * @param place the op that cannot start
 * @param reason what it lacks
 * @param awaited the op that would let it start
 * @param awaitedPlace where that op stands; empty if it is nowhere ahead on the rank that should
 *     run it
 */
public record BlockedOp(OpPlace place, Reason reason, Op awaited, Optional<OpPlace> awaitedPlace) {
    /** What an op may lack. */
    public enum Reason {
        /** Its tensor. */
        TENSOR,
        /** Room in the channel that it sends to. */
        CREDIT,
        /** Other members of its collective. */
        MEMBERS
    }
}
