package dev.penstock.schedules.ir;

/**
 * An op in one long, for programs of millions of ops.
 *
 * <pre>
 * bits 60-63  kind
 *      40-59  stage
 *      16-39  micro-batch
 *       0-15  slice
 * </pre>
 *
 * Kinds 0 to 8 are those of units. What has no code (pairs, layer ranges, indices that do not fit)
 * stands in a table of its own, and its code is {@link #RARE} with the place there.
 */
final class OpCode {
    static final int RARE = 15;

    private static final int FORWARD = 0;
    private static final int BACKWARD = 1;
    private static final int BACKWARD_INPUT = 2;
    private static final int BACKWARD_WEIGHT = 3;
    private static final int RECOMPUTE = 4;
    private static final int SEND_ACTIVATION = 5;
    private static final int RECEIVE_ACTIVATION = 6;
    private static final int SEND_GRADIENT = 7;
    private static final int RECEIVE_GRADIENT = 8;

    private static final int STAGE_BITS = 20;
    private static final int MICRO_BATCH_BITS = 24;
    private static final int SLICE_BITS = 16;
    private static final int MICRO_BATCH_SHIFT = SLICE_BITS;
    private static final int STAGE_SHIFT = MICRO_BATCH_SHIFT + MICRO_BATCH_BITS;
    private static final int KIND_SHIFT = STAGE_SHIFT + STAGE_BITS;

    private OpCode() {}

    /** Whether the op has a code that says all of it. */
    static boolean fits(Op op) {
        return switch (op) {
            case Op.UnitOp of -> fits(of.unit());
            case Op.Overlapped _, Op.ParameterOp _, Op.ReduceGradients _ -> false;
        };
    }

    private static boolean fits(WorkUnit unit) {
        return unit.stage() >> STAGE_BITS == 0
                && unit.microBatch() >> MICRO_BATCH_BITS == 0
                && unit.slice() >> SLICE_BITS == 0;
    }

    /** The code of an op that fits. */
    static long of(Op op) {
        return switch (op) {
            case Op.Forward(WorkUnit unit) -> of(FORWARD, unit);
            case Op.Backward(WorkUnit unit) -> of(BACKWARD, unit);
            case Op.BackwardInput(WorkUnit unit) -> of(BACKWARD_INPUT, unit);
            case Op.BackwardWeight(WorkUnit unit) -> of(BACKWARD_WEIGHT, unit);
            case Op.Recompute(WorkUnit unit) -> of(RECOMPUTE, unit);
            case Op.SendActivation(WorkUnit unit) -> of(SEND_ACTIVATION, unit);
            case Op.ReceiveActivation(WorkUnit unit) -> of(RECEIVE_ACTIVATION, unit);
            case Op.SendGradient(WorkUnit unit) -> of(SEND_GRADIENT, unit);
            case Op.ReceiveGradient(WorkUnit unit) -> of(RECEIVE_GRADIENT, unit);
            case Op.Overlapped _, Op.ParameterOp _, Op.ReduceGradients _ ->
                    throw new IllegalArgumentException(op + " has no code");
        };
    }

    private static long of(int kind, WorkUnit unit) {
        return (long) kind << KIND_SHIFT
                | (long) unit.stage() << STAGE_SHIFT
                | (long) unit.microBatch() << MICRO_BATCH_SHIFT
                | unit.slice();
    }

    static long ofRare(int place) {
        return (long) RARE << KIND_SHIFT | place;
    }

    static boolean isRare(long code) {
        return code >>> KIND_SHIFT == RARE;
    }

    static int rarePlace(long code) {
        return (int) code;
    }

    /** The op of a code that is not rare. */
    static Op op(long code) {
        var unit =
                new WorkUnit(
                        field(code, STAGE_SHIFT, STAGE_BITS),
                        field(code, MICRO_BATCH_SHIFT, MICRO_BATCH_BITS),
                        field(code, 0, SLICE_BITS));
        return switch ((int) (code >>> KIND_SHIFT)) {
            case FORWARD -> new Op.Forward(unit);
            case BACKWARD -> new Op.Backward(unit);
            case BACKWARD_INPUT -> new Op.BackwardInput(unit);
            case BACKWARD_WEIGHT -> new Op.BackwardWeight(unit);
            case RECOMPUTE -> new Op.Recompute(unit);
            case SEND_ACTIVATION -> new Op.SendActivation(unit);
            case RECEIVE_ACTIVATION -> new Op.ReceiveActivation(unit);
            case SEND_GRADIENT -> new Op.SendGradient(unit);
            case RECEIVE_GRADIENT -> new Op.ReceiveGradient(unit);
            default -> throw new IllegalArgumentException("no op has the code " + code);
        };
    }

    private static int field(long code, int shift, int bits) {
        return (int) (code >>> shift) & (1 << bits) - 1;
    }
}
