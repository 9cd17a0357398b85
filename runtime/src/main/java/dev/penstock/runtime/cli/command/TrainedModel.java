package dev.penstock.runtime.cli.command;

import dev.penstock.runtime.checkpoint.CheckpointFolders;
import dev.penstock.runtime.checkpoint.HuggingFaceWeights;
import dev.penstock.runtime.checkpoint.ModelTensors;
import dev.penstock.runtime.checkpoint.SavedCheckpoint;
import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.metrics.RunDirectory;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.safetensors.StoredFileException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;

/**
 * A model that a user names by a path: a run's folder, one of its checkpoints, or weights in the
 * Hugging Face format with their {@code config.json}.
 *
 * @param checkpoint where it is one
 */
public record TrainedModel(
        ModelConfig config, ModelTensors tensors, Optional<SavedCheckpoint> checkpoint)
        implements AutoCloseable {
    /**
     * Opens it; the caller closes it.
     *
     * @param notes receives what was passed over, such as a damaged checkpoint
     * @throws StoredFileException if there is no such model, or it is not whole
     */
    public static TrainedModel open(Path path, Consumer<String> notes) {
        TrainedModel model =
                Files.isRegularFile(path) || HuggingFaceWeights.areIn(path)
                        ? fromWeights(path)
                        : fromCheckpoint(CheckpointFolders.find(path, notes));
        try {
            model.tensors().requireParameters(model.config());
        } catch (StoredFileException e) {
            model.close();
            throw e;
        }
        return model;
    }

    private static TrainedModel fromCheckpoint(SavedCheckpoint checkpoint) {
        return new TrainedModel(
                checkpoint.manifest().model(), checkpoint.read(), Optional.of(checkpoint));
    }

    private static TrainedModel fromWeights(Path path) {
        HuggingFaceWeights weights = HuggingFaceWeights.open(path);
        ModelConfig config =
                weights.config()
                        .orElseThrow(
                                () -> {
                                    weights.close();
                                    return new StoredFileException(
                                            path,
                                            "expected a config.json beside the weights, got none");
                                });
        return new TrainedModel(config, weights, Optional.empty());
    }

    /** The model's shape, for those who compute with it. */
    public ModelShape shape() {
        return config.shape();
    }

    /** Stages of its run's pipeline; 1 where there is no run to ask. */
    public int stagesOfRun() {
        return checkpoint
                .map(saved -> saved.path().toAbsolutePath().getParent())
                .map(Path::getParent)
                .map(run -> new RunDirectory(run).resolvedConfiguration())
                .filter(Files::isReadable)
                .map(file -> ConfigLoader.draft(file, List.of()))
                .filter(draft -> draft.sound("pipeline.stages"))
                .map(draft -> draft.draft().config().pipeline().stages())
                .orElse(1);
    }

    @Override
    public void close() {
        tensors.close();
    }
}
