package dev.penstock.schedules.generate.vshaped;

import dev.penstock.schedules.generate.base.Pipeline;

/**
 * The six ways of a micro-batch through V placement: forward down the ranks (low chunks) and up
 * again (high chunks), back the same way, and the weights, which nobody waits for.
 */
enum VPass {
    FORWARD_LOW,
    FORWARD_HIGH,
    INPUT_HIGH,
    INPUT_LOW,
    WEIGHT_HIGH,
    WEIGHT_LOW;

    private static final VPass[] ALL = values();

    static VPass of(int index) {
        return ALL[index];
    }

    /** Counts the passes in the order above, in which a table of units holds them. */
    int index() {
        return ordinal();
    }

    boolean isForward() {
        return this == FORWARD_LOW || this == FORWARD_HIGH;
    }

    boolean isWeight() {
        return this == WEIGHT_HIGH || this == WEIGHT_LOW;
    }

    /** From rank 0 to the last; the others go from the last to rank 0, or nowhere. */
    boolean goesDown() {
        return this == FORWARD_LOW || this == INPUT_HIGH;
    }

    /** The pass for the weights of a backward for the input. */
    VPass weight() {
        return switch (this) {
            case INPUT_HIGH -> WEIGHT_HIGH;
            case INPUT_LOW -> WEIGHT_LOW;
            case FORWARD_LOW, FORWARD_HIGH, WEIGHT_HIGH, WEIGHT_LOW ->
                    throw new IllegalArgumentException(this + " leaves no weights to do");
        };
    }

    /** Appends its op to a program. */
    void write(Pipeline.Program program, int microBatch) {
        switch (this) {
            case FORWARD_LOW -> program.forward(0, microBatch, 0);
            case FORWARD_HIGH -> program.forward(1, microBatch, 0);
            case INPUT_HIGH -> program.backwardInput(1, microBatch, 0);
            case INPUT_LOW -> program.backwardInput(0, microBatch, 0);
            case WEIGHT_HIGH -> program.backwardWeight(1, microBatch, 0);
            case WEIGHT_LOW -> program.backwardWeight(0, microBatch, 0);
        }
    }
}
