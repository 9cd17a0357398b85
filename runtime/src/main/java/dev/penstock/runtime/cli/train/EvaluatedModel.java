package dev.penstock.runtime.cli.train;

import dev.penstock.actors.spi.DeviceFactory;
import dev.penstock.runtime.checkpoint.HeldCheckpoint;
import dev.penstock.runtime.checkpoint.SavedCheckpoint;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.config.run.DeviceKind;
import dev.penstock.runtime.config.run.DeviceSection;
import dev.penstock.runtime.config.run.DraftConfig;
import dev.penstock.runtime.data.DataFormat;
import dev.penstock.runtime.evaluation.TaskData;
import dev.penstock.runtime.inference.PipelineInference;
import dev.penstock.runtime.inference.TrainedModel;
import dev.penstock.runtime.launch.devices.ConfiguredDevices;
import dev.penstock.runtime.model.shape.Precision;
import dev.penstock.runtime.model.shape.StagePartition;
import dev.penstock.runtime.tokenizer.Tokenizer;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * A model that a task is measured with: weights, or a checkpoint of a run, which stays while it is
 * read and is used as the run has it.
 *
 * @param run its configuration; empty where the model is of no run's folder
 * @param held the checkpoint, where it is of a run's folder
 */
record EvaluatedModel(TrainedModel model, Optional<DraftConfig> run, Optional<HeldCheckpoint> held)
        implements AutoCloseable {
    /** Opens a checkpoint of a run; the caller closes it. */
    static EvaluatedModel ofRun(
            SavedCheckpoint saved, DraftConfig configuration, Consumer<String> notes) {
        HeldCheckpoint held = HeldCheckpoint.of(saved);
        try {
            return new EvaluatedModel(
                    TrainedModel.openForText(held.path(), notes),
                    Optional.of(configuration),
                    Optional.of(held));
        } catch (RuntimeException e) {
            held.close();
            throw e;
        }
    }

    /** Opens weights, or a checkpoint by itself; the caller closes it. */
    static EvaluatedModel at(Path path, Consumer<String> notes) {
        return new EvaluatedModel(
                TrainedModel.openForText(path, notes), Optional.empty(), Optional.empty());
    }

    /**
     * Opens the tokenizer that was asked for, else the run's, else what fits the model.
     *
     * @param problems told as well, if there is none
     */
    Tokenizer tokenizer(ModelArguments usage, List<Problem> problems) {
        return usage.tokenizerOf(
                model,
                run.isPresent()
                        ? run.map(draft -> draft.draft().config().data().tokenizer().word())
                        : model.tokenizer(),
                problems);
    }

    /**
     * Tokens of a window: as many as were asked for, else as the run's sequences have, else as the
     * model has positions for.
     *
     * @param asked by the user; null: nothing
     * @param problems receives one if the model has fewer positions
     */
    int context(@Nullable Integer asked, List<Problem> problems) {
        int most = model.shape().context();
        if (asked != null && asked > most) {
            problems.add(
                    Problem.atOption(
                            "--context",
                            "at most %d tokens, for which the model has positions".formatted(most),
                            asked.toString(),
                            ""));
        }
        int usual =
                run.filter(draft -> draft.sound("model.context"))
                        .map(draft -> draft.draft().config().model().context())
                        .or(model::contextOfRun)
                        .orElse(most);
        return Math.min(asked == null ? usual : asked, most);
    }

    /** A task's files, of which a run's configuration may say what they hold. */
    static TaskData data(Path source, boolean byFile, Optional<DraftConfig> run) {
        TaskData usual = TaskData.of(source, byFile);
        return run.filter(draft -> draft.sound("data"))
                .map(draft -> draft.draft().config().data())
                .map(
                        section ->
                                new TaskData(
                                        source,
                                        byFile,
                                        Optional.of(DataFormat.valueOf(section.format().name()))
                                                .filter(format -> format != DataFormat.TEXT)
                                                .filter(format -> format != DataFormat.CHAT)
                                                .filter(format -> format != DataFormat.TOKENS)
                                                .filter(format -> format != DataFormat.GIVEN),
                                        section.field()))
                .orElse(usual);
    }

    /**
     * Makes the pipeline.
     *
     * @param problems receives one if it is not possible
     */
    PipelineInference pipeline(ModelArguments usage, List<Problem> problems) {
        int ofRun =
                run.map(draft -> draft.draft().config().pipeline().stages())
                        .orElseGet(model::stagesOfRun);
        int stages = usage.stagesOf(model, ofRun, problems);
        problems.addAll(
                usage.problemsOfDevice(
                        model,
                        run.map(draft -> draft.draft().config().device().kind())
                                .orElse(DeviceKind.AUTO)));
        Optional<DeviceSection> section = run.map(draft -> draft.draft().config().device());
        Precision precision =
                switch (section.map(DeviceSection::precision)
                        .orElse(DeviceSection.Precision.FLOAT32)) {
                    case FLOAT32 -> Precision.FLOAT32;
                    case BF16 -> Precision.BF16;
                    case FP16 -> Precision.FP16;
                };
        return new PipelineInference(
                model.shape(),
                StagePartition.byFlops(model.shape(), problems.isEmpty() ? stages : 1),
                precision,
                model.tensors()::fill,
                devices(usage, section, stages));
    }

    private static DeviceFactory devices(
            ModelArguments usage, Optional<DeviceSection> section, int stages) {
        DeviceKind usual = section.map(DeviceSection::kind).orElse(DeviceKind.AUTO);
        boolean asRun = usage.device().isEmpty() && section.isPresent() && !usual.isCuda();
        return asRun
                ? ConfiguredDevices.of(section.get(), stages)
                : ConfiguredDevices.of(usage.device().orElse(usual), stages);
    }

    @Override
    public void close() {
        model.close();
        held.ifPresent(HeldCheckpoint::close);
    }
}
