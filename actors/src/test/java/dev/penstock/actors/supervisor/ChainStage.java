package dev.penstock.actors.supervisor;

import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.SharedGradient;
import dev.penstock.actors.spi.StageGroups;
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
 * The smallest model with everything a pipeline moves: stage s multiplies by its weight, the loss
 * of a unit is the product. Its truth is a closed form: loss = x * w0 * w1 * ..., gradient of w_s =
 * loss / w_s. The first and last weights may be tied.
 */
final class ChainStage implements StageProgram {
    static final int COLUMNS = 3;

    /** What a test may change. */
    record Settings(int stages, int microBatches, int slices, boolean tied, double rate) {}

    private final Settings settings;
    private final int stage;
    private final DeviceScope scope;
    private final Tensor weight;
    private final Tensor gradient;
    private final Map<WorkUnit, Float> kept = new HashMap<>();
    private final Map<WorkUnit, Float> outputGradients = new HashMap<>();
    private StepKind kind = StepKind.TRAIN;
    private long step;
    private double loss;

    ChainStage(Settings settings, int stage, Device device) {
        this.settings = settings;
        this.stage = stage;
        this.scope = device.memory().child("chain " + stage, Long.MAX_VALUE);
        this.weight = scope.tensor("weight", DType.F32, 1, 1);
        this.gradient = scope.tensor("gradient", DType.F32, 1, 1);
        set(weight, initialWeight(settings, stage));
    }

    static float initialWeight(Settings settings, int stage) {
        boolean isLastOfTied = settings.tied() && stage == settings.stages() - 1;
        return 1 + 0.25f * (isLastOfTied ? 0 : stage);
    }

    /** What the first stage reads. */
    static float data(StepKind kind, long step, int microBatch, int slice) {
        float base = kind == StepKind.TRAIN ? 1 : 2;
        return base + step * 0.125f + microBatch * 0.5f + slice * 0.0625f;
    }

    static float get(Tensor tensor) {
        return tensor.segment().get(ValueLayout.JAVA_FLOAT, 0);
    }

    private static void set(Tensor tensor, float value) {
        for (long i = 0; i < tensor.elements(); i++) {
            tensor.segment().setAtIndex(ValueLayout.JAVA_FLOAT, i, value);
        }
    }

    @Override
    public int stage() {
        return stage;
    }

    @Override
    public int boundaryRows(int slice) {
        return 2 + slice;
    }

    @Override
    public int boundaryColumns() {
        return COLUMNS;
    }

    @Override
    public void connect(StageGroups groups) {}

    @Override
    public void beginStep(StepKind newKind, long newStep) {
        kind = newKind;
        step = newStep;
        loss = 0;
    }

    @Override
    public void forward(WorkUnit unit, @Nullable Tensor input, @Nullable Tensor output) {
        float x = input == null ? data(kind, step, unit.microBatch(), unit.slice()) : get(input);
        kept.put(unit, x);
        float y = x * get(weight);
        if (output == null) {
            loss += y / (settings.microBatches() * settings.slices());
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
        backwardInput(unit, input, outputGradient, inputGradient);
        backwardWeight(unit);
    }

    @Override
    public void backwardInput(
            WorkUnit unit,
            @Nullable Tensor input,
            @Nullable Tensor outputGradient,
            @Nullable Tensor inputGradient) {
        float dy =
                outputGradient == null
                        ? 1f / (settings.microBatches() * settings.slices())
                        : get(outputGradient);
        outputGradients.put(unit, dy);
        if (inputGradient != null) {
            set(inputGradient, dy * get(weight));
        }
    }

    @Override
    public void backwardWeight(WorkUnit unit) {
        Float x = kept.remove(unit);
        Float dy = outputGradients.remove(unit);
        if (x == null || dy == null) {
            throw new IllegalStateException("backward without forward of " + unit);
        }
        set(gradient, get(gradient) + dy * x);
    }

    private boolean shares() {
        return settings.tied()
                && settings.stages() > 1
                && (stage == 0 || stage == settings.stages() - 1);
    }

    @Override
    public List<SharedGradient> sharedGradients() {
        return shares()
                ? List.of(new SharedGradient("w", List.of(0, settings.stages() - 1), gradient))
                : List.of();
    }

    @Override
    public StepResult finishStep() {
        var result =
                stage == settings.stages() - 1 ? OptionalDouble.of(loss) : OptionalDouble.empty();
        boolean counts = kind == StepKind.TRAIN && (!shares() || stage == 0);
        double square = (double) get(gradient) * get(gradient);
        return new StepResult(
                result, counts ? List.of(new TensorNorm("w" + stage, square)) : List.of());
    }

    @Override
    public void update(long committedStep, double clipFactor) {
        set(weight, (float) (get(weight) - settings.rate() * clipFactor * get(gradient)));
        set(gradient, 0);
    }

    @Override
    public List<NamedTensor> state() {
        return List.of(new NamedTensor("w" + stage, List.of(1), weight));
    }

    @Override
    public List<NamedTensor> gradients() {
        return List.of(new NamedTensor("w" + stage, List.of(1), gradient));
    }

    @Override
    public TrainedState trained() {
        return new TrainedState() {
            @Override
            public List<NamedTensor> gradients() {
                return ChainStage.this.gradients();
            }

            @Override
            public List<NamedTensor> tensors() {
                return state();
            }

            @Override
            public void replaced() {}
        };
    }

    @Override
    public void close() {
        scope.close();
    }
}
