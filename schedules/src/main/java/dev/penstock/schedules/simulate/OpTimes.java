package dev.penstock.schedules.simulate;

import dev.penstock.schedules.ir.Op;

/** Is told when ops run: of one rank in the order of its program, of several ranks in any order. */
interface OpTimes {
    /** For who wants to know only whether a schedule gets stuck. */
    OpTimes IGNORED = (_, _, _, _, _, _) -> {};

    /**
     * An op ran.
     *
     * @param end also of what it does beside the computations
     * @param free when the rank can go on
     */
    void ran(int rank, int position, Op op, long start, long end, long free);
}
