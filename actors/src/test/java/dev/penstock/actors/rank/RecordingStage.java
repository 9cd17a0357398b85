package dev.penstock.actors.rank;

import dev.penstock.actors.collective.Collective;
import dev.penstock.actors.collective.SoloGroup;
import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.SharedGradient;
import dev.penstock.actors.spi.StageGroups;
import dev.penstock.actors.spi.StageProgram;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.actors.spi.StepResult;
import dev.penstock.actors.spi.TrainedState;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.schedules.ir.LayerRange;
import dev.penstock.schedules.ir.WorkUnit;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import org.jspecify.annotations.Nullable;

/**
 * A stage that computes next to nothing and writes down every call. A unit's output is its input
 * plus one and the gradient of its input is that of its output plus one, so the tensor that a stage
 * reads says how many stages it came through.
 */
final class RecordingStage implements StageProgram {
    private final int stage;
    private final List<String> calls;

    /** What each unit's forward read. */
    private final Map<WorkUnit, Float> inputs = new HashMap<>();

    /** Sums of gradients that this stage begins; all are done at once unless a test sets it. */
    Collective reduction = SoloGroup.DONE;

    /** Gathers of parameters that this stage begins. */
    Collective gather = SoloGroup.DONE;

    /** The directions of all gathers so far: whether the first layers were wanted first. */
    final List<Boolean> rising = new ArrayList<>();

    RecordingStage(int stage, List<String> calls) {
        this.stage = stage;
        this.calls = calls;
    }

    private void called(String what, WorkUnit unit) {
        calls.add("%d%s%d".formatted(stage, what, unit.microBatch()));
    }

    private static float get(@Nullable Tensor tensor) {
        return tensor == null ? 0 : tensor.segment().get(ValueLayout.JAVA_FLOAT, 0);
    }

    private static void set(@Nullable Tensor tensor, float value) {
        if (tensor != null) {
            tensor.segment().set(ValueLayout.JAVA_FLOAT, 0, value);
        }
    }

    @Override
    public int stage() {
        return stage;
    }

    @Override
    public int boundaryRows(int slice) {
        return 2;
    }

    @Override
    public int boundaryColumns() {
        return 3;
    }

    @Override
    public void connect(StageGroups groups) {}

    @Override
    public void beginStep(StepKind kind, long step) {}

    @Override
    public void forward(WorkUnit unit, @Nullable Tensor input, @Nullable Tensor output) {
        called("F", unit);
        inputs.put(unit, get(input));
        set(output, get(input) + 1);
    }

    @Override
    public void park(WorkUnit unit) {
        called("P", unit);
    }

    @Override
    public void recompute(WorkUnit unit, @Nullable Tensor input) {
        called("R", unit);
        verifyInput(unit, input);
    }

    @Override
    public void backward(
            WorkUnit unit,
            @Nullable Tensor input,
            @Nullable Tensor outputGradient,
            @Nullable Tensor inputGradient) {
        called("B", unit);
        backwardOf(unit, input, outputGradient, inputGradient);
    }

    @Override
    public void backwardInput(
            WorkUnit unit,
            @Nullable Tensor input,
            @Nullable Tensor outputGradient,
            @Nullable Tensor inputGradient) {
        called("I", unit);
        backwardOf(unit, input, outputGradient, inputGradient);
    }

    private void backwardOf(
            WorkUnit unit,
            @Nullable Tensor input,
            @Nullable Tensor outputGradient,
            @Nullable Tensor inputGradient) {
        verifyInput(unit, input);
        set(inputGradient, get(outputGradient) + 1);
    }

    /** Nobody may write to an input between the forward that read it and the backward. */
    private void verifyInput(WorkUnit unit, @Nullable Tensor input) {
        if (get(input) != stage || inputs.getOrDefault(unit, -1f) != stage) {
            throw new AssertionError(
                    "stage %d read %s, later %s, of %s"
                            .formatted(stage, inputs.get(unit), get(input), unit));
        }
    }

    @Override
    public void backwardWeight(WorkUnit unit) {
        called("W", unit);
    }

    @Override
    public Collective gather(LayerRange layers, boolean firstLayersFirst) {
        calls.add(stage + "GATHER");
        rising.add(firstLayersFirst);
        return gather;
    }

    @Override
    public void release(LayerRange layers) {
        calls.add(stage + "RELEASE");
    }

    @Override
    public Collective reduceGradients() {
        calls.add(stage + "REDUCE");
        return reduction;
    }

    @Override
    public List<SharedGradient> sharedGradients() {
        return List.of();
    }

    @Override
    public StepResult finishStep() {
        return new StepResult(OptionalDouble.empty(), List.of());
    }

    @Override
    public void update(long step, double clipFactor) {}

    @Override
    public List<NamedTensor> state() {
        return List.of();
    }

    @Override
    public List<NamedTensor> gradients() {
        return List.of();
    }

    @Override
    public TrainedState trained() {
        throw new UnsupportedOperationException("a recording stage has no parameters");
    }

    @Override
    public void close() {}
}
