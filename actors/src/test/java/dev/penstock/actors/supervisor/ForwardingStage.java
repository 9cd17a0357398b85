package dev.penstock.actors.supervisor;

import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.SharedGradient;
import dev.penstock.actors.spi.StageProgram;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.actors.spi.StepResult;
import dev.penstock.actors.spi.TrainedState;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** A real stage whose faults a test adds by overriding. */
class ForwardingStage implements StageProgram {
    private final StageProgram real;

    ForwardingStage(StageProgram real) {
        this.real = real;
    }

    @Override
    public int stage() {
        return real.stage();
    }

    @Override
    public int boundaryRows(int slice) {
        return real.boundaryRows(slice);
    }

    @Override
    public int boundaryColumns() {
        return real.boundaryColumns();
    }

    @Override
    public void beginStep(StepKind kind, long step) {
        real.beginStep(kind, step);
    }

    @Override
    public void forward(WorkUnit unit, @Nullable Tensor input, @Nullable Tensor output) {
        real.forward(unit, input, output);
    }

    @Override
    public void backward(
            WorkUnit unit,
            @Nullable Tensor input,
            @Nullable Tensor outputGradient,
            @Nullable Tensor inputGradient) {
        real.backward(unit, input, outputGradient, inputGradient);
    }

    @Override
    public void backwardInput(
            WorkUnit unit,
            @Nullable Tensor input,
            @Nullable Tensor outputGradient,
            @Nullable Tensor inputGradient) {
        real.backwardInput(unit, input, outputGradient, inputGradient);
    }

    @Override
    public void backwardWeight(WorkUnit unit) {
        real.backwardWeight(unit);
    }

    @Override
    public List<SharedGradient> sharedGradients() {
        return real.sharedGradients();
    }

    @Override
    public StepResult finishStep() {
        return real.finishStep();
    }

    @Override
    public void update(long step, double clipFactor) {
        real.update(step, clipFactor);
    }

    @Override
    public List<NamedTensor> state() {
        return real.state();
    }

    @Override
    public List<NamedTensor> gradients() {
        return real.gradients();
    }

    @Override
    public TrainedState trained() {
        return real.trained();
    }

    @Override
    public void close() {
        real.close();
    }
}
