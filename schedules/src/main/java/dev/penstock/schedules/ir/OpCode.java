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
 * The kind is the number of an {@link OpKind}. What has no code (pairs, layer ranges, indices that
 * do not fit) stands in a table of its own, and its code is {@link #RARE} with the place there.
 */
final class OpCode {
    static final int RARE = 15;

    private static final OpKind[] KINDS = OpKind.values();

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
            case Op.UnitOp of -> of(OpKind.of(of), of.unit());
            case Op.Overlapped _, Op.ParameterOp _, Op.ReduceGradients _ ->
                    throw new IllegalArgumentException(op + " has no code");
        };
    }

    private static long of(OpKind kind, WorkUnit unit) {
        return (long) kind.ordinal() << KIND_SHIFT
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
        return KINDS[(int) (code >>> KIND_SHIFT)].on(unit);
    }

    private static int field(long code, int shift, int bits) {
        return (int) (code >>> shift) & (1 << bits) - 1;
    }
}
