package dev.penstock.actors.simulation;

import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.NonFiniteException;
import dev.penstock.actors.spi.SharedGradient;
import dev.penstock.actors.spi.StageGroups;
import dev.penstock.actors.spi.StageMirror;
import dev.penstock.actors.spi.StageProgram;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.actors.spi.StepResult;
import dev.penstock.actors.spi.TensorNorm;
import dev.penstock.actors.spi.TrainedState;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.schedules.ir.WorkUnit;
import java.lang.foreign.ValueLayout;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import org.jspecify.annotations.Nullable;

/**
 * A stage of one weight with momentum: y = x w. Every state depends on all updates before it, in
 * every bit, and so does every loss. Also its own mirror.
 */
final class SimStage implements StageProgram, StageMirror, TrainedState {
    static final double RATE = 0.02;

    /** Sees every update. */
    @FunctionalInterface
    interface Watch {
        /**
         * Called after each.
         *
         * @param bits of weight and momentum after the update
         */
        void updated(int stage, long step, long bits);
    }

    private final int stage;
    private final int stages;
    private final int microBatches;
    private final Watch watch;
    private final SimNan nan;
    private final DeviceScope scope;
    private final Tensor weight;
    private final Tensor moment;
    private final Tensor gradient;
    private final Map<WorkUnit, Float> inputs = new HashMap<>();
    private StepKind kind = StepKind.TRAIN;
    private long step;
    private double loss;

    SimStage(int stage, int stages, int microBatches, Watch watch, SimNan nan, Device device) {
        this.stage = stage;
        this.stages = stages;
        this.microBatches = microBatches;
        this.watch = watch;
        this.nan = nan;
        this.scope = device.memory().child("stage " + stage, Long.MAX_VALUE);
        this.weight = scope.tensor("weight", DType.F32, 1, 1);
        this.moment = scope.tensor("moment", DType.F32, 1, 1);
        this.gradient = scope.tensor("gradient", DType.F32, 1, 1);
        set(weight, firstWeight(stage));
    }

    static float firstWeight(int stage) {
        return 0.9f + 0.07f * stage;
    }

    static long firstBits(int stage) {
        return (long) Float.floatToRawIntBits(firstWeight(stage)) << 32;
    }

    static float data(StepKind kind, long step, int microBatch) {
        return (kind == StepKind.TRAIN ? 1f : 2f) + 0.013f * step + 0.17f * microBatch;
    }

    private static float get(Tensor tensor) {
        return tensor.segment().get(ValueLayout.JAVA_FLOAT, 0);
    }

    private static void set(Tensor tensor, float value) {
        tensor.segment().set(ValueLayout.JAVA_FLOAT, 0, value);
    }

    /** Weight and momentum in one number. */
    long bits() {
        return (long) Float.floatToRawIntBits(get(weight)) << 32
                | Integer.toUnsignedLong(Float.floatToRawIntBits(get(moment)));
    }

    SimStage withBits(long bits) {
        set(weight, Float.intBitsToFloat((int) (bits >>> 32)));
        set(moment, Float.intBitsToFloat((int) bits));
        return this;
    }

    static long bits(List<NamedTensor> state) {
        return (long) Float.floatToRawIntBits(get(state.getFirst().tensor())) << 32
                | Integer.toUnsignedLong(Float.floatToRawIntBits(get(state.getLast().tensor())));
    }

    @Override
    public int stage() {
        return stage;
    }

    @Override
    public int boundaryRows(int slice) {
        return 1;
    }

    @Override
    public int boundaryColumns() {
        return 1;
    }

    @Override
    public void connect(StageGroups groups) {}

    @Override
    public void beginStep(StepKind newKind, long newStep) {
        kind = newKind;
        step = newStep;
        loss = 0;
        inputs.clear();
        set(gradient, 0); // what is left of a pass that was cut short
    }

    @Override
    public void forward(WorkUnit unit, @Nullable Tensor input, @Nullable Tensor output) {
        if (kind == StepKind.TRAIN && nan.strikes(stage, step)) {
            throw new NonFiniteException(step, unit, "the activation");
        }
        float x = input == null ? data(kind, step, unit.microBatch()) : get(input);
        inputs.put(unit, x);
        float y = x * get(weight);
        if (output == null) {
            loss += y / microBatches;
        } else {
            set(output, y);
        }
    }

    @Override
    public void backward(
            WorkUnit unit,
            @Nullable Tensor input,
            @Nullable Tensor outputGradient,
            @Nullable Tensor inputGradient) {
        Float x = inputs.remove(unit);
        if (x == null) {
            throw new IllegalStateException("backward without forward of " + unit);
        }
        float dy = outputGradient == null ? 1f / microBatches : get(outputGradient);
        set(gradient, get(gradient) + dy * x);
        if (inputGradient != null) {
            set(inputGradient, dy * get(weight));
        }
    }

    @Override
    public void backwardInput(
            WorkUnit unit,
            @Nullable Tensor input,
            @Nullable Tensor outputGradient,
            @Nullable Tensor inputGradient) {
        throw new UnsupportedOperationException("only whole backwards are simulated");
    }

    @Override
    public void backwardWeight(WorkUnit unit) {
        throw new UnsupportedOperationException("only whole backwards are simulated");
    }

    @Override
    public List<SharedGradient> sharedGradients() {
        return List.of();
    }

    @Override
    public StepResult finishStep() {
        var last = stage == stages - 1 ? OptionalDouble.of(loss) : OptionalDouble.empty();
        double square = (double) get(gradient) * get(gradient);
        return new StepResult(
                last,
                kind == StepKind.TRAIN ? List.of(new TensorNorm("w" + stage, square)) : List.of());
    }

    @Override
    public void update(long committedStep, double clipFactor) {
        float m = (float) (0.5f * get(moment) + clipFactor * get(gradient));
        set(moment, m);
        set(weight, (float) (get(weight) - RATE * m));
        set(gradient, 0);
        watch.updated(stage, committedStep, bits());
    }

    @Override
    public List<NamedTensor> state() {
        return tensors();
    }

    @Override
    public List<NamedTensor> tensors() {
        return List.of(
                new NamedTensor("w" + stage, List.of(1), weight),
                new NamedTensor("m" + stage, List.of(1), moment));
    }

    @Override
    public List<NamedTensor> gradients() {
        return List.of(new NamedTensor("w" + stage, List.of(1), gradient));
    }

    @Override
    public void replaced() {}

    @Override
    public TrainedState trained() {
        return this;
    }

    @Override
    public void close() {
        scope.close();
    }
}
