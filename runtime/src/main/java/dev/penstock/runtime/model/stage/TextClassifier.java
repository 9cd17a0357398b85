package dev.penstock.runtime.model.stage;

import static java.util.Objects.requireNonNull;

import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.data.BatchSource;
import dev.penstock.runtime.model.parameters.ParameterSource;
import dev.penstock.runtime.model.shape.AdamWSettings;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.FineTuning;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.LearningRate;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.Precision;
import dev.penstock.runtime.model.shape.StageBudget;
import dev.penstock.runtime.model.shape.StagePartition;
import dev.penstock.schedules.ir.WorkUnit;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Optional;

/**
 * A whole model on one device that computes the logits of an encoder's head, a pass of several
 * texts at a time. Nothing in it is trained, so that it holds parameters and activations alone.
 * Used by one thread, which closes it and the device.
 */
public final class TextClassifier implements AutoCloseable {
    private static final WorkUnit ALL = new WorkUnit(0, 0, 0);

    private final GptStage stage;
    private final int texts;
    private final int context;
    private final int outputs;

    private TextClassifier(GptStage stage, int texts, int context, int outputs) {
        this.stage = stage;
        this.texts = texts;
        this.context = context;
        this.outputs = outputs;
    }

    /**
     * Builds it.
     *
     * @param shape of the model, for sequences of the length that the texts are padded to
     * @param texts of a pass
     * @param batches the texts as evaluations read them
     */
    public static TextClassifier build(
            ModelShape shape,
            int texts,
            Device device,
            BatchSource batches,
            ParameterSource source) {
        int context = shape.context();
        var batch = new BatchShape(texts, 1, List.of(context), context);
        GptSettings settings =
                GptSettings.of(
                                shape,
                                StagePartition.byFlops(shape, 1),
                                batch,
                                Precision.FLOAT32,
                                new AdamWSettings(
                                        LearningRate.constant(1), 0.9, 0.95, 1e-8, 0, false),
                                0)
                        .training(new FineTuning(Optional.empty(), List.of("*")));
        GptStage stage =
                new GptStageFactory(
                                settings, List.of(StageBudget.everything(batch)), batches, source)
                        .create(0, new RankPlace(0, 0, 0, 0), device);
        return new TextClassifier(stage, texts, context, shape.outputs());
    }

    /**
     * Returns the logits of a token of every text of a pass.
     *
     * @param pass from 0
     * @param token whose loss counts
     * @return for each text as many numbers as the head has outputs
     */
    public float[][] logits(long pass, int token) {
        stage.beginStep(StepKind.EVALUATE, pass);
        stage.forward(ALL, null, null);
        Tensor logits = requireNonNull(stage.logits());
        MemorySegment all = logits.contents();
        float[][] found = new float[texts][outputs];
        for (int text = 0; text < found.length; text++) {
            for (int i = 0; i < outputs; i++) {
                long at = (long) (text * context + token) * logits.stride() + i;
                found[text][i] = all.getAtIndex(ValueLayout.JAVA_FLOAT, at);
            }
        }
        return found;
    }

    @Override
    public void close() {
        stage.close();
    }
}
