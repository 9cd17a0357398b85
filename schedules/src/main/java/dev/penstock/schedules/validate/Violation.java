package dev.penstock.schedules.validate;

import dev.penstock.schedules.ir.OpPlace;
import dev.penstock.schedules.simulate.BlockedOp;
import java.util.List;

/** One reason why a schedule is refused. */
public sealed interface Violation {
    /** Where: rank, position and op. A missing op has its rank and the end of its program. */
    OpPlace place();

    /** What is wrong there, as a sentence for people that names rank and op. */
    String message();

    /** An op of a stage, micro-batch or slice that does not exist. */
    record UnknownUnit(OpPlace place, String message) implements Violation {}

    /** An op that has no business in such a schedule. */
    record Unexpected(OpPlace place, String message) implements Violation {}

    /** An op of a stage that is placed on another rank. */
    record WrongRank(OpPlace place, int expectedRank, String message) implements Violation {}

    /** An op that stands in the schedule a second time. */
    record Duplicate(OpPlace place, String message) implements Violation {}

    /** An op that a complete schedule has and this one has not. */
    record Missing(OpPlace place, String message) implements Violation {}

    /** A computation whose parameters are not there, or a release of such. */
    record NotResident(OpPlace place, String message) implements Violation {}

    /** An op that comes before another of its rank whose result it needs. */
    record OutOfOrder(OpPlace place, OpPlace needed, String message) implements Violation {}

    /** Slices of a sequence that do not rise in the forwards or do not fall in the backwards. */
    record SliceOrder(OpPlace place, OpPlace needed, String message) implements Violation {}

    /**
     * Ranks that wait for each other for ever.
     *
     * @param place where the first of them stands
     * @param cycle each entry waits for the next, the last for the first
     */
    record Deadlock(OpPlace place, List<BlockedOp> cycle, String message) implements Violation {
        public Deadlock {
            cycle = List.copyOf(cycle);
        }
    }

    /** A rank that holds more units at a time than it may. */
    record PeakExceeded(OpPlace place, int peakUnits, int limit, String message)
            implements Violation {}

    /**
     * A rank that holds more bytes at a time than it may.
     *
     * @param peak what comes and goes, at the place
     * @param held what all of it is, in the words of the message
     */
    record MemoryExceeded(
            OpPlace place,
            long peakBytes,
            long limitBytes,
            RankBytes peak,
            String held,
            String message)
            implements Violation {}
}
