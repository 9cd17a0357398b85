package dev.penstock.actors.spi;

import dev.penstock.actors.collective.Collective;
import dev.penstock.actors.collective.SoloGroup;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.schedules.ir.LayerRange;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.BitSet;
import java.util.List;
import java.util.OptionalDouble;
import org.jspecify.annotations.Nullable;

/**
 * The computation of one stage on one device. Owned by one shard actor and called from its thread
 * only, in the order of the rank's program. A unit's boundary tensors are F32 {@code [rows of the
 * slice, width]}; see {@link #boundaryRows} and {@link #boundaryColumns}. A computation returns
 * when it is done: the host may use its boundary tensors.
 *
 * <p>A step is: {@link #beginStep}, forwards and backwards, {@link #finishStep}; then, once the
 * supervisor committed, {@link #update}. An evaluation ends with {@code finishStep}.
 */
public interface StageProgram extends AutoCloseable {

    /** The global index of this stage. */
    int stage();

    /** The first layer of this stage, which changes where a run cuts its layers anew. */
    default int firstLayer() {
        return stage();
    }

    /** How many layers this stage has: the next stage begins with the one behind them. */
    default int layers() {
        return 1;
    }

    /** Rows of a boundary tensor of this token slice, at most. */
    int boundaryRows(int slice);

    /**
     * Rows of a unit's boundary tensor in the step that has begun: fewer than {@link
     * #boundaryRows(int)} where its micro-batch has shorter sequences. The stage at the other end
     * of a link says the same.
     */
    default int boundaryRows(WorkUnit unit) {
        return boundaryRows(unit.slice());
    }

    /**
     * Sequences of a micro-batch, whose rows follow each other in a boundary tensor; 1 where a rank
     * has parts of them.
     */
    default int boundarySequences() {
        return 1;
    }

    /**
     * The number of the row of the data that a sequence is in the step that has begun, from 0; -1
     * where rows do not come again, and in evaluations. The stage at the other end of a link says
     * the same.
     *
     * @param microBatch numbered as in this rank's program
     * @param sequence of the micro-batch, from 0
     */
    default int dataRow(int microBatch, int sequence) {
        return -1;
    }

    /** Columns of every boundary tensor. */
    int boundaryColumns();

    /**
     * Says with whom this stage computes until the next call: at the beginning of every epoch,
     * before its first step.
     */
    void connect(StageGroups groups);

    /**
     * Says that the pass under way will not be finished, for the run recovers in another epoch.
     * Whoever waits for what the pass makes may be told.
     *
     * @param cause what happened, in a sentence; empty if it was said before
     */
    default void interrupt(String cause) {}

    /**
     * Starts a step. Reads what the step needs of the data.
     *
     * @param step the training step from 1; for an evaluation, the index of the held-out batch from
     *     0
     */
    void beginStep(StepKind kind, long step);

    /**
     * Says, before a training step begins, how its loss is scaled: once, where its gradient is
     * computed, so that all gradients of the step carry the scale until {@link #update} divides by
     * it with the factor that it gets. A number that is not finite is then no failure; {@link
     * StepResult#overflow} reports it.
     *
     * @param scale a power of two; empty if the loss is not scaled
     */
    default void scaleLoss(OptionalDouble scale) {
        if (scale.isPresent()) {
            throw new UnsupportedOperationException("this stage cannot scale its loss");
        }
    }

    /**
     * Starts a training step once more whose last pass was abandoned. What is in {@link #folded}
     * stays, and the losses of it; if a backward of such a micro-batch runs again, its gradients
     * are dropped. A stage that holds nothing of this step begins it.
     */
    default void resumeStep(long step) {
        beginStep(StepKind.TRAIN, step);
    }

    /**
     * Runs a unit forward and keeps what its backward needs (in a training step).
     *
     * @param input the stage's input, which the caller leaves untouched until the unit's backward
     *     is done; null on the first stage
     * @param output receives the stage's output; null on the last stage
     */
    void forward(WorkUnit unit, @Nullable Tensor input, @Nullable Tensor output);

    /**
     * Lets go of what a forward kept of a unit, all but what its {@link #recompute} cannot do
     * without. A stage that keeps everything is right as well, only larger.
     */
    default void park(WorkUnit unit) {}

    /**
     * Brings back what {@link #park} let go of, to the bit: its backward follows.
     *
     * @param input as given to the forward; null on the first stage
     */
    default void recompute(WorkUnit unit, @Nullable Tensor input) {}

    /**
     * Starts to bring what a forward kept of a unit to the host; its room on the device is free for
     * others. A stage that keeps everything is right as well, only larger.
     */
    default void offload(WorkUnit unit) {}

    /**
     * Starts to bring back, to the bit, what {@link #offload} took away; the unit's backward waits
     * for it.
     */
    default void reload(WorkUnit unit) {}

    /**
     * Time that copies of a stage have taken since it was built, beside its rank's computations but
     * for the waits; all in nanoseconds.
     *
     * @param toHost of {@link #offload}
     * @param back of {@link #reload}
     * @param loads that gathers begin, where parameters are swapped
     * @param leaving of gradients whose sum is complete, where they are swapped
     * @param waits of the rank's thread for activations, inside of computations
     */
    record Copies(long toHost, long back, long loads, long leaving, long waits) {
        /** Nothing was copied. */
        public static final Copies NONE = new Copies(0, 0, 0, 0, 0);
    }

    /** What copies have taken so far. */
    default Copies copies() {
        return Copies.NONE;
    }

    /** What this stage holds and ever held on the host or on disk instead of its device. */
    default List<MemoryUse> hostMemory() {
        return List.of();
    }

    /**
     * Runs a unit backward; gradients of parameters accumulate.
     *
     * @param input as given to the forward; null on the first stage
     * @param outputGradient gradient of the output, may be overwritten; null on the last stage
     * @param inputGradient receives the gradient of the input; null on the first stage
     */
    void backward(
            WorkUnit unit,
            @Nullable Tensor input,
            @Nullable Tensor outputGradient,
            @Nullable Tensor inputGradient);

    /**
     * Runs the part of a unit's backward that others wait for. The stage keeps for {@link
     * #backwardWeight} what that needs; the boundary tensors may be used again when this returns.
     * Both parts together give the bits of {@link #backward} if both visit units in its order.
     *
     * @param input as given to the forward; null on the first stage
     * @param outputGradient gradient of the output, may be overwritten; null on the last stage
     * @param inputGradient receives the gradient of the input; null on the first stage
     */
    void backwardInput(
            WorkUnit unit,
            @Nullable Tensor input,
            @Nullable Tensor outputGradient,
            @Nullable Tensor inputGradient);

    /** Runs the rest of a unit's backward, any time after its {@link #backwardInput}. */
    void backwardWeight(WorkUnit unit);

    /**
     * Returns where the second op of a pair runs: the same stage with scratch and sums of its own,
     * so that one op of the pair may compute while the other waits for a sum. On it only {@link
     * #forward}, {@link #backward}, {@link #backwardInput} and {@link #backwardWeight} may be
     * called, from any thread, as long as the other op of the pair computes nothing at that moment.
     *
     * @return this stage itself, if its ops always run one after the other
     */
    default StageProgram beside() {
        return this;
    }

    /**
     * Starts to gather parameters that are sharded among the replicas; what needs them waits for
     * them. Between ops the actor moves it on. A stage that holds its parameters has nothing to do.
     *
     * @param rising whether the first layers are needed first
     */
    default Collective gather(LayerRange layers, boolean rising) {
        return SoloGroup.DONE;
    }

    /**
     * Time that the rank's thread has spent on gathers of this stage since it was built: beginning
     * them, moving them on, waiting for them; in computations and between.
     */
    default long gatherNanos() {
        return 0;
    }

    /** Lets go of gathered parameters; its own part stays. */
    default void release(LayerRange layers) {}

    /**
     * The micro-batches of the training step that began last, numbered as in this rank's program,
     * whose gradients are complete in the stage's sums; none where sums depend on their order, or
     * once a reduction has begun.
     */
    default BitSet folded() {
        return new BitSet();
    }

    /**
     * Starts to sum the gradients with those of the replicas. Until it is done, nobody adds to
     * them; between ops the actor moves it on.
     */
    default Collective reduceGradients() {
        return SoloGroup.DONE;
    }

    /**
     * Gradients that this stage shares with another (tied embeddings): the actor replaces each by
     * the sum over its sharers, added in rising order of stages, before {@link #finishStep}.
     */
    List<SharedGradient> sharedGradients();

    /**
     * Ends the passes of a step: the loss if this is the last stage, and the norms of the
     * gradients.
     */
    StepResult finishStep();

    /**
     * Applies the optimizer after the supervisor's commit and clears the gradients.
     *
     * @param clipFactor factor on every gradient: of clipping, and 1 / the loss scale
     */
    void update(long step, double clipFactor);

    /**
     * Says, before {@link #update}, how many earlier steps the optimizer has not seen because they
     * overflowed: its own count and the learning rate leave them out.
     */
    default void skipped(long steps) {}

    /**
     * What this rank puts into a checkpoint of the stage's parameters and optimizer state: of all
     * ranks together every element once, so shared ones on one stage only and copies on one rank.
     */
    List<NamedTensor> state();

    /**
     * Copies the present gradients (of parameters that this stage counts), for tests and dumps:
     * called between {@link #finishStep} and {@link #update}.
     */
    List<NamedTensor> gradients();

    /** What a mirror of this stage keeps equal. */
    TrainedState trained();

    @Override
    void close();
}
