package dev.penstock.schedules.generate.vshaped;

/** When a rank does the backwards for the weights that it has put off. */
enum WeightFilling {
    /** Where the given order says. */
    AS_GIVEN,
    /** Whenever the next op of the given order has to wait, or the memory is full. */
    WHILE_WAITING,
    /** The same, unless that would hold up the next op, as far as its start is known. */
    IF_IT_FITS
}
