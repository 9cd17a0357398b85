package dev.penstock.runtime.launch;

import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.SharedGradient;
import dev.penstock.actors.spi.StageProgram;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.actors.spi.StepResult;
import dev.penstock.actors.spi.TrainedState;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.checkpoint.SafetensorsFile;
import dev.penstock.runtime.checkpoint.SafetensorsWriter;
import dev.penstock.runtime.checkpoint.StoredTensor;
import dev.penstock.runtime.checkpoint.StoredType;
import dev.penstock.schedules.ir.WorkUnit;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Writes a stage's gradients of one step, before clipping, to a file of its own; {@link #merge}
 * makes one file of all stages'.
 */
final class GradientDump implements StageProgram {
    private final StageProgram stage;
    private final RunOptions.DumpRequest request;

    GradientDump(StageProgram stage, RunOptions.DumpRequest request) {
        this.stage = stage;
        this.request = request;
    }

    @Override
    public void update(long step, double clipFactor) {
        if (step == request.step()) {
            write(part(request.file(), stage.stage()), stored(stage.gradients()));
        }
        stage.update(step, clipFactor);
    }

    /** Joins the stages' files into the one that was asked for and removes them. */
    static void merge(RunOptions.DumpRequest request, int stages) {
        for (int s = 0; s < stages; s++) {
            if (!Files.exists(part(request.file(), s))) {
                return; // the run ended before that step
            }
        }
        List<SafetensorsFile> open = new ArrayList<>();
        try {
            List<StoredTensor> all = new ArrayList<>();
            for (int s = 0; s < stages; s++) {
                SafetensorsFile file = SafetensorsFile.open(part(request.file(), s));
                open.add(file);
                all.addAll(file.tensors());
            }
            write(request.file(), all);
        } finally {
            open.forEach(SafetensorsFile::close);
        }
        for (int s = 0; s < stages; s++) {
            try {
                Files.delete(part(request.file(), s));
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }

    private static Path part(Path file, int stage) {
        return file.resolveSibling(file.getFileName() + ".stage-" + stage);
    }

    private static void write(Path file, List<StoredTensor> tensors) {
        SafetensorsWriter.write(file, Map.of(), tensors);
    }

    private static List<StoredTensor> stored(List<NamedTensor> tensors) {
        return tensors.stream()
                .map(
                        named ->
                                new StoredTensor(
                                        named.name(),
                                        StoredType.F32,
                                        named.shape(),
                                        named.tensor().segment()))
                .toList();
    }

    @Override
    public int stage() {
        return stage.stage();
    }

    @Override
    public int boundaryRows(int slice) {
        return stage.boundaryRows(slice);
    }

    @Override
    public int boundaryColumns() {
        return stage.boundaryColumns();
    }

    @Override
    public void beginStep(StepKind kind, long step) {
        stage.beginStep(kind, step);
    }

    @Override
    public void forward(WorkUnit unit, @Nullable Tensor input, @Nullable Tensor output) {
        stage.forward(unit, input, output);
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
    public List<SharedGradient> sharedGradients() {
        return stage.sharedGradients();
    }

    @Override
    public StepResult finishStep() {
        return stage.finishStep();
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
