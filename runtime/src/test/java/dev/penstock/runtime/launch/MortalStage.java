package dev.penstock.runtime.launch;

import dev.penstock.actors.spi.ForwardingStage;
import dev.penstock.actors.spi.StageProgram;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.actors.spi.StepResult;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.schedules.ir.WorkUnit;
import org.jspecify.annotations.Nullable;

/** A stage of a process that may die, with all its ranks, while only one of them is harmed. */
final class MortalStage extends ForwardingStage {
    private final ProcessLife life;

    MortalStage(StageProgram stage, ProcessLife life) {
        super(stage);
        this.life = life;
    }

    @Override
    public void beginStep(StepKind kind, long step) {
        life.requireAlive();
        super.beginStep(kind, step);
    }

    @Override
    public void forward(WorkUnit unit, @Nullable Tensor input, @Nullable Tensor output) {
        life.requireAlive();
        super.forward(unit, input, output);
    }

    @Override
    public void backward(
            WorkUnit unit,
            @Nullable Tensor input,
            @Nullable Tensor outputGradient,
            @Nullable Tensor inputGradient) {
        life.requireAlive();
        super.backward(unit, input, outputGradient, inputGradient);
    }

    @Override
    public StepResult finishStep() {
        life.requireAlive();
        return super.finishStep();
    }

    @Override
    public void update(long step, double clipFactor) {
        life.requireAlive();
        super.update(step, clipFactor);
    }

    @Override
    public void close() {
        life.beforeClosing();
        super.close();
    }
}
