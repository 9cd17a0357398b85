package dev.penstock.schedules.simulate;

import dev.penstock.schedules.ir.Op;

/** Is told when ops run: of one rank in the order of its program, of several ranks in any order. */
interface OpTimes {
    /** For who wants to know only whether a schedule gets stuck. */
    OpTimes IGNORED = (_, _, _, _, _) -> {};

    void ran(int rank, int position, Op op, long start, long end);
}
