package dev.penstock.actors.spi;

import dev.penstock.actors.collective.Collective;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.schedules.ir.LayerRange;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.BitSet;
import java.util.List;
import java.util.OptionalDouble;
import org.jspecify.annotations.Nullable;

/**
 * A stage that does as another does, on whose thread and with whose ownership; subclasses look on
 * or interfere.
 */
public abstract class ForwardingStage implements StageProgram {
    private final StageProgram stage;

    /**
     * @param stage which closes with this one
     */
    protected ForwardingStage(StageProgram stage) {
        this.stage = stage;
    }

    @Override
    public int stage() {
        return stage.stage();
    }

    @Override
    public int firstLayer() {
        return stage.firstLayer();
    }

    @Override
    public int layers() {
        return stage.layers();
    }

    /** Second ops of pairs, if they have a place of their own, are not looked on. */
    @Override
    public StageProgram beside() {
        StageProgram beside = stage.beside();
        return beside.equals(stage) ? this : beside;
    }

    @Override
    public int boundaryRows(int slice) {
        return stage.boundaryRows(slice);
    }

    @Override
    public int boundaryRows(WorkUnit unit) {
        return stage.boundaryRows(unit);
    }

    @Override
    public int boundarySequences() {
        return stage.boundarySequences();
    }

    @Override
    public int dataRow(int microBatch, int sequence) {
        return stage.dataRow(microBatch, sequence);
    }

    @Override
    public int boundaryColumns() {
        return stage.boundaryColumns();
    }

    @Override
    public void connect(StageGroups groups) {
        stage.connect(groups);
    }

    @Override
    public void interrupt(String cause) {
        stage.interrupt(cause);
    }

    @Override
    public void beginStep(StepKind kind, long step) {
        stage.beginStep(kind, step);
    }

    @Override
    public void resumeStep(long step) {
        stage.resumeStep(step);
    }

    @Override
    public void forward(WorkUnit unit, @Nullable Tensor input, @Nullable Tensor output) {
        stage.forward(unit, input, output);
    }

    @Override
    public void park(WorkUnit unit) {
        stage.park(unit);
    }

    @Override
    public void recompute(WorkUnit unit, @Nullable Tensor input) {
        stage.recompute(unit, input);
    }

    @Override
    public void backward(
            WorkUnit unit,
            @Nullable Tensor input,
            @Nullable Tensor outputGradient,
            @Nullable Tensor inputGradient) {
        stage.backward(unit, input, outputGradient, inputGradient);
    }

    @Override
    public void backwardInput(
            WorkUnit unit,
            @Nullable Tensor input,
            @Nullable Tensor outputGradient,
            @Nullable Tensor inputGradient) {
        stage.backwardInput(unit, input, outputGradient, inputGradient);
    }

    @Override
    public void backwardWeight(WorkUnit unit) {
        stage.backwardWeight(unit);
    }

    @Override
    public Collective gather(LayerRange layers, boolean rising) {
        return stage.gather(layers, rising);
    }

    @Override
    public Copies copies() {
        return stage.copies();
    }

    @Override
    public long gatherNanos() {
        return stage.gatherNanos();
    }

    @Override
    public void release(LayerRange layers) {
        stage.release(layers);
    }

    @Override
    public BitSet folded() {
        return stage.folded();
    }

    @Override
    public Collective reduceGradients() {
        return stage.reduceGradients();
    }

    @Override
    public List<SharedGradient> sharedGradients() {
        return stage.sharedGradients();
    }

    @Override
    public StepResult finishStep() {
        return stage.finishStep();
    }

    @Override
    public void offload(WorkUnit unit) {
        stage.offload(unit);
    }

    @Override
    public void reload(WorkUnit unit) {
        stage.reload(unit);
    }

    @Override
    public List<MemoryUse> hostMemory() {
        return stage.hostMemory();
    }

    @Override
    public void scaleLoss(OptionalDouble scale) {
        stage.scaleLoss(scale);
    }

    @Override
    public void skipped(long steps) {
        stage.skipped(steps);
    }

    @Override
    public void update(long step, double clipFactor) {
        stage.update(step, clipFactor);
    }

    @Override
    public List<NamedTensor> state() {
        return stage.state();
    }

    @Override
    public List<NamedTensor> gradients() {
        return stage.gradients();
    }

    @Override
    public TrainedState trained() {
        return stage.trained();
    }

    @Override
    public void close() {
        stage.close();
    }
}
