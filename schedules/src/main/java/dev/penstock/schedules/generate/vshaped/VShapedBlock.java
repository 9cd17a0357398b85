package dev.penstock.schedules.generate.vshaped;

/**
 * Where the passes of one micro-batch lie on every rank, in slots of equal length; the next
 * micro-batch lies {@value #PERIOD} slots later, and so on. How long the passes of a block keep a
 * rank's activations alive decides the memory of the whole schedule (Qi et al. 2024, arXiv
 * 2405.15362, sections 2.1, 2.2 and 3.1). Every pass moves from rank to rank with a stride of its
 * own:
 *
 * <pre>
 * rank 0 | F . . . . . . f i . . . . . . I      F, f  forward of the low, the high chunk
 * rank 1 | . F . . . . f . . i . . . . I .      i, I  backward for the input: high, low chunk
 * rank 2 | . . F . . f . . . . i . . I . .
 * rank 3 | . . . F f . . . . . . i I . . .      all strides and turns 1: memory 1/3 of 1F1B
 * </pre>
 *
 * @param forwardDown slots between the low forwards of neighbouring ranks
 * @param turnAtLast slots from low to high forward on the last rank
 * @param forwardUp slots between the high forwards of neighbouring ranks
 * @param turnAtFirst slots from high forward to high backward on rank 0
 * @param backwardDown slots between the high backwards of neighbouring ranks
 * @param turnBack slots from high to low backward on the last rank
 * @param backwardUp slots between the low backwards of neighbouring ranks
 */
record VShapedBlock(
        int ranks,
        int forwardDown,
        int turnAtLast,
        int forwardUp,
        int turnAtFirst,
        int backwardDown,
        int turnBack,
        int backwardUp) {
    /** Slots from one micro-batch to the next: two chunks of forward, input and weights. */
    static final int PERIOD = 6;

    /**
     * The slot of a pass of micro-batch 0. Weights have no slot of their own, they take those that
     * the others leave.
     */
    int slot(VPass pass, int rank) {
        int last = ranks - 1;
        int up = last - rank;
        int forwardTop = forwardDown * last + turnAtLast + forwardUp * last;
        int backwardBottom = forwardTop + turnAtFirst + backwardDown * last;
        return switch (pass) {
            case FORWARD_LOW -> forwardDown * rank;
            case FORWARD_HIGH -> forwardDown * last + turnAtLast + forwardUp * up;
            case INPUT_HIGH -> forwardTop + turnAtFirst + backwardDown * rank;
            case INPUT_LOW -> backwardBottom + turnBack + backwardUp * up;
            case WEIGHT_HIGH, WEIGHT_LOW ->
                    throw new IllegalArgumentException(pass + " has no slot of its own");
        };
    }

    /** Slots from the first pass of a micro-batch to its last backward for an input. */
    int length() {
        return slot(VPass.INPUT_LOW, 0) + 1;
    }
}
