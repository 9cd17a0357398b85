package dev.penstock.runtime.launch;

import dev.penstock.runtime.checkpoint.CheckpointFolders;
import dev.penstock.runtime.checkpoint.CheckpointReader;
import dev.penstock.runtime.checkpoint.HuggingFaceWeights;
import dev.penstock.runtime.checkpoint.SavedCheckpoint;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.model.parameters.ParameterSource;
import dev.penstock.runtime.safetensors.StoredFileException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.OptionalLong;
import java.util.function.Consumer;

/**
 * Where a run begins. Its files are open until it is closed: stages read their first values from
 * them whenever they are built.
 */
public final class StartingPoint implements AutoCloseable {
    private final long completedSteps;
    private final ParameterSource parameters;
    private final Consumer<ModelConfig> fit;
    private final Runnable close;
    private boolean closed;

    private StartingPoint(
            long completedSteps,
            ParameterSource parameters,
            Consumer<ModelConfig> fit,
            Runnable close) {
        this.completedSteps = completedSteps;
        this.parameters = parameters;
        this.fit = fit;
        this.close = close;
    }

    /**
     * A checkpoint to continue from, weights to start from, or a fresh model.
     *
     * @throws StoredFileException if it cannot be read
     */
    static StartingPoint of(RunStart asked) {
        if (asked.resume().isPresent()) {
            return resumed(asked.resume().get(), asked.evaluateOnly());
        }
        if (asked.init().isPresent()) {
            Path init = asked.init().get();
            if (Files.isDirectory(init) && !HuggingFaceWeights.areIn(init)) {
                return learned(CheckpointFolders.find(init, _ -> {}));
            }
            HuggingFaceWeights weights = HuggingFaceWeights.open(init);
            return new StartingPoint(
                    0,
                    weights::fill,
                    model -> {
                        weights.requireParameters(model);
                        weights.config().ifPresent(own -> requireSame(init, own, model));
                    },
                    weights::close);
        }
        return new StartingPoint(0, ParameterSource.none(), _ -> {}, () -> {});
    }

    private static StartingPoint resumed(Path checkpoint, boolean evaluateOnly) {
        try {
            SavedCheckpoint saved = SavedCheckpoint.open(checkpoint);
            CheckpointReader reader = saved.read();
            return new StartingPoint(
                    saved.step(),
                    reader::fill,
                    model -> {
                        reader.requireState(model);
                        requireSame(checkpoint, saved.manifest().model(), model);
                    },
                    reader::close);
        } catch (StoredFileException e) {
            OptionalLong step = CheckpointFolders.stepOf(checkpoint);
            if (evaluateOnly || step.isEmpty() || Files.exists(checkpoint)) {
                throw e;
            }
            return outlived(checkpoint, step.getAsLong());
        }
    }

    /**
     * The run has newer checkpoints and let go of this one: a process that joins it now starts from
     * one of them, and has to know only where the run began.
     */
    private static StartingPoint outlived(Path checkpoint, long step) {
        return new StartingPoint(
                step,
                (_, _, _) -> {
                    throw new StoredFileException(
                            checkpoint,
                            "expected the checkpoint that the run began with, but it is gone");
                },
                _ -> {},
                () -> {});
    }

    /** What a checkpoint has learned, for an optimizer that starts afresh. */
    private static StartingPoint learned(SavedCheckpoint checkpoint) {
        CheckpointReader reader = checkpoint.read();
        return new StartingPoint(
                0,
                (name, piece, destination) ->
                        !name.startsWith("optimizer.") && reader.fill(name, piece, destination),
                model -> {
                    reader.requireParameters(model);
                    requireSame(checkpoint.path(), checkpoint.manifest().model(), model);
                },
                reader::close);
    }

    private static void requireSame(Path weights, ModelConfig own, ModelConfig model) {
        List<String> differences = own.differences(model);
        if (!differences.isEmpty()) {
            throw new StoredFileException(
                    weights,
                    "expected weights of the run's model, got others: "
                            + String.join("; ", differences));
        }
    }

    /**
     * Compares with the model that is to start here.
     *
     * @throws StoredFileException if what is there does not fit, naming every difference
     */
    void requireFit(ModelConfig model) {
        fit.accept(model);
    }

    /** Training steps already done. */
    public long completedSteps() {
        return completedSteps;
    }

    /** First values; what it lacks starts from its default. */
    ParameterSource parameters() {
        return parameters;
    }

    /** Unmaps the files; nothing may be read from here afterwards. */
    @Override
    public void close() {
        if (!closed) {
            closed = true;
            close.run();
        }
    }
}
