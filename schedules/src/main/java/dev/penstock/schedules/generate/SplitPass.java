package dev.penstock.schedules.generate;

/** The three computations of a micro-batch on a rank when its backward is split. */
enum SplitPass {
    FORWARD,
    BACKWARD_INPUT,
    BACKWARD_WEIGHT
}
