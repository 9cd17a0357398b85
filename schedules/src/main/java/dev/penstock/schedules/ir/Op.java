package dev.penstock.schedules.ir;

/**
 * One entry of a {@link RankProgram}. An op cannot exist without everything it needs, and a new
 * kind makes every switch that forgot it fail to compile (so no switch over ops has a {@code
 * default}).
 *
 * <p>A transfer names the stage of the rank that runs it: {@code SendActivation(0, ..)} on the
 * producer pairs with {@code ReceiveActivation(1, ..)} on the consumer; {@code SendGradient(1, ..)}
 * pairs with {@code ReceiveGradient(0, ..)}.
 */
public sealed interface Op {

    /** The global index of the stage that this op works for. */
    int stage();

    /** An op that belongs to one (stage, micro-batch, slice). */
    sealed interface UnitOp extends Op {
        WorkUnit unit();

        @Override
        default int stage() {
            return unit().stage();
        }
    }

    /** A computation of a unit. */
    sealed interface Compute extends UnitOp {}

    /** One half of a tensor's way between two stages on different ranks. */
    sealed interface Transfer extends UnitOp {}

    /** Forward; keeps what its backward needs. Text: {@code 2F0}. */
    record Forward(WorkUnit unit) implements Compute {}

    /** The full backward: gradients of input and weights. Text: {@code 2B0}. */
    record Backward(WorkUnit unit) implements Compute {}

    /** Sends the output of {@code unit.stage()} to the next stage. Text: {@code 2SEND_F0}. */
    record SendActivation(WorkUnit unit) implements Transfer {}

    /** Receives the input of {@code unit.stage()} from the stage before. Text: {@code 2RECV_F0}. */
    record ReceiveActivation(WorkUnit unit) implements Transfer {}

    /**
     * Sends the gradient of the input of {@code unit.stage()} to the stage before: {@code
     * 2SEND_B0}.
     */
    record SendGradient(WorkUnit unit) implements Transfer {}

    /**
     * Receives the gradient of the output of {@code unit.stage()} from the next: {@code 2RECV_B0}.
     */
    record ReceiveGradient(WorkUnit unit) implements Transfer {}

    /**
     * Sums the gradients of the parameters that {@code stage} shares with other stages (tied
     * embeddings). A collective of ranks: it completes on no rank before every rank that holds a
     * member has reached the first of its members. Text: {@code 0REDUCE_GRAD}.
     */
    record ReduceGradients(int stage) implements Op {}
}
