package dev.penstock.schedules.ir;

import java.util.List;

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

    /** The computations that run when this op runs: none, itself, or an overlapped pair. */
    default List<Compute> computations() {
        return List.of();
    }

    /** Whether it hands a tensor to another rank. */
    default boolean isSend() {
        return this instanceof SendActivation || this instanceof SendGradient;
    }

    /** A computation of a unit. */
    sealed interface Compute extends UnitOp {
        @Override
        default List<Compute> computations() {
            return List.of(this);
        }
    }

    /** A computation whose end makes the gradient of the unit's input. */
    sealed interface InputGradient extends Compute {}

    /** One half of a tensor's way between two stages on different ranks. */
    sealed interface Transfer extends UnitOp {}

    /** Forward; keeps what its backward needs. Text: {@code 2F0}. */
    record Forward(WorkUnit unit) implements Compute {}

    /** The full backward: gradients of input and weights. Text: {@code 2B0}. */
    record Backward(WorkUnit unit) implements InputGradient {}

    /**
     * The part of the backward that others wait for: the gradient of the input. The unit stays live
     * until its {@link BackwardWeight}. Text: {@code 2I0}.
     */
    record BackwardInput(WorkUnit unit) implements InputGradient {}

    /**
     * The part of the backward that nobody waits for: the gradients of the weights, any time after
     * the unit's {@link BackwardInput}. Text: {@code 2W0}.
     */
    record BackwardWeight(WorkUnit unit) implements Compute {}

    /**
     * Runs the forward again to have back what the backward needs; between the forward and this op
     * the unit holds its input alone. Text: {@code 2R0}.
     */
    record Recompute(WorkUnit unit) implements Compute {}

    /**
     * A forward and another computation of one rank whose parts are interleaved, so that one's
     * communication hides behind the other's computation: a backward (DualPipe), or also a forward
     * of another micro-batch or a backward for the weights (STP; Qi et al. 2025, arXiv 2510.27257).
     * Both start when both can, and both end together. Text: {@code (0F7;7B3)OVERLAP_F_B}, {@code
     * (0F1;0F2)OVERLAP_F_F}, {@code (0F7;7W3)OVERLAP_F_W}.
     *
     * @param partner no {@link Recompute}
     */
    record Overlapped(Forward forward, Compute partner) implements Op {
        public Overlapped {
            if (partner instanceof Recompute) {
                throw new IllegalArgumentException(
                        "expected a forward or a backward beside " + forward + ", got " + partner);
            }
        }

        /** The stage of the forward. */
        @Override
        public int stage() {
            return forward.stage();
        }

        @Override
        public List<Compute> computations() {
            return List.of(forward, partner);
        }
    }

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
     * Moves what a unit keeps for its backward between the device and its host (PipeOffload; Wan et
     * al. 2025, arXiv 2503.01328). It goes on beside the computations; the moves of a rank run one
     * after another.
     */
    sealed interface ActivationOp extends UnitOp {}

    /**
     * Starts to bring a unit's activations to the host. Their room on the device is free from here
     * on: who takes it waits until they have left. Text: {@code 2OFFLOAD0}.
     */
    record Offload(WorkUnit unit) implements ActivationOp {}

    /**
     * Takes room and starts to bring a unit's activations back; the unit's backward waits for them.
     * Text: {@code 2RELOAD0}.
     */
    record Reload(WorkUnit unit) implements ActivationOp {}

    /** Makes parameters resident or lets them go (ZeRO-3). */
    sealed interface ParameterOp extends Op {
        LayerRange layers();
    }

    /**
     * Starts to gather sharded parameters from the stage's replicas. It goes on beside the
     * computations; the next one that needs the parameters waits for it. Text: {@code 1UNSHARD}, or
     * {@code 1UNSHARD[0-3]} for some layers of the stage.
     */
    record GatherParameters(int stage, LayerRange layers) implements ParameterOp {}

    /** Frees gathered parameters; its own shard stays. Text: {@code 1RESHARD}. */
    record ReleaseParameters(int stage, LayerRange layers) implements ParameterOp {}

    /**
     * Sums the stage's gradients with those of everybody else who holds the same parameters:
     * replicas, and with a stage's last reduction other stages (tied embeddings). That last one of
     * a shared stage is a collective of ranks: it completes on no rank before every rank that holds
     * a member has reached the first such one of its members. Text: {@code 0REDUCE_GRAD}.
     */
    record ReduceGradients(int stage) implements Op {}
}
