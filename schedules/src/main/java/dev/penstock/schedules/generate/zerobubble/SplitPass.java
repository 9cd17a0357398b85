package dev.penstock.schedules.generate.zerobubble;

/** The three computations of a micro-batch on a rank when its backward is split. */
public enum SplitPass {
    FORWARD,
    BACKWARD_INPUT,
    BACKWARD_WEIGHT
}
