package dev.penstock.runtime.launch;

import dev.penstock.actors.precision.LossScaleHistory;
import dev.penstock.actors.precision.LossScaler;
import dev.penstock.actors.precision.LossScaling;
import dev.penstock.actors.spi.TensorPiece;
import dev.penstock.runtime.checkpoint.CheckpointFolders;
import dev.penstock.runtime.checkpoint.CheckpointReader;
import dev.penstock.runtime.checkpoint.HuggingFaceWeights;
import dev.penstock.runtime.checkpoint.PeftAdapter;
import dev.penstock.runtime.checkpoint.SavedCheckpoint;
import dev.penstock.runtime.model.family.AdapterParts;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.model.parameters.ParameterSource;
import dev.penstock.runtime.model.shape.Adapters;
import dev.penstock.runtime.model.shape.SwapCommit;
import dev.penstock.runtime.safetensors.StoredFileException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.function.Consumer;

/**
 * Where a run begins. Its files are open until it is closed: stages read their first values from
 * them whenever they are built.
 */
public final class StartingPoint implements AutoCloseable {
    private final long completedSteps;
    private final String lossScale;
    private final long scaledStep;
    private final List<Long> overflows;
    private final ParameterSource parameters;
    private final Consumer<ModelConfig> fit;
    private final Runnable close;
    private boolean closed;

    private StartingPoint(
            long completedSteps,
            ParameterSource parameters,
            Consumer<ModelConfig> fit,
            Runnable close) {
        this(completedSteps, "", parameters, fit, close);
    }

    /**
     * @param lossScale the state of the loss scaler after these steps; empty if there was none
     */
    private StartingPoint(
            long completedSteps,
            String lossScale,
            ParameterSource parameters,
            Consumer<ModelConfig> fit,
            Runnable close) {
        this(completedSteps, lossScale, completedSteps, List.of(), parameters, fit, close);
    }

    /**
     * @param lossScale the state of the loss scaler after {@code scaledStep}
     * @param overflows the steps that overflowed, rising, from a step not after {@code scaledStep}
     *     to the completed ones
     */
    private StartingPoint(
            long completedSteps,
            String lossScale,
            long scaledStep,
            List<Long> overflows,
            ParameterSource parameters,
            Consumer<ModelConfig> fit,
            Runnable close) {
        this.completedSteps = completedSteps;
        this.lossScale = lossScale;
        this.scaledStep = scaledStep;
        this.overflows = overflows;
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
        if (asked.swapped().isPresent()) {
            return swapped(asked.swapped().get(), asked.resume());
        }
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
                        weights.requireParameters(model.base());
                        weights.config().ifPresent(own -> requireSame(init, own, model.base()));
                    },
                    weights::close);
        }
        return new StartingPoint(0, ParameterSource.none(), _ -> {}, () -> {});
    }

    /**
     * Returns this with an adapter whose fit is known; both are closed with it.
     *
     * @param adapter whose parameters are not those of the model
     */
    StartingPoint with(PeftAdapter adapter) {
        return new StartingPoint(
                completedSteps,
                lossScale,
                scaledStep,
                overflows,
                (name, piece, destination) ->
                        adapter.fill(name, piece, destination)
                                || parameters.fill(name, piece, destination),
                fit,
                () -> {
                    adapter.close();
                    close();
                });
    }

    /**
     * @param checkpoint the newest one, not after the update: what overflowed since decides, with
     *     the state of its loss scaler, on the state after the update
     */
    private static StartingPoint swapped(SwapCommit update, Optional<Path> checkpoint) {
        Optional<SavedCheckpoint> saved = checkpoint.map(SavedCheckpoint::open);
        return new StartingPoint(
                update.step(),
                saved.map(from -> from.manifest().lossScale()).orElse(""),
                saved.map(SavedCheckpoint::step).orElse(0L),
                update.overflows(),
                kept(update),
                _ -> {},
                () -> {});
    }

    private static ParameterSource kept(SwapCommit update) {
        return new ParameterSource() {
            @Override
            public boolean fill(String name, TensorPiece piece, MemorySegment destination) {
                return false; // nothing asks for what stages have themselves
            }

            @Override
            public Optional<SwapCommit> swapped() {
                return Optional.of(update);
            }
        };
    }

    private static StartingPoint resumed(Path checkpoint, boolean evaluateOnly) {
        try {
            SavedCheckpoint saved = SavedCheckpoint.open(checkpoint);
            CheckpointReader reader = saved.read();
            return new StartingPoint(
                    saved.step(),
                    saved.manifest().lossScale(),
                    reader::fill,
                    model -> {
                        requireSameTuning(checkpoint, saved.manifest().model(), model);
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
                    ModelConfig own = checkpoint.manifest().model();
                    if (own.fineTuning().adapters().isPresent()) {
                        requireSameAdapters(checkpoint.path(), own, model);
                        reader.requireParameters(model);
                    } else if (model.shape().classifies() && !own.shape().classifies()) {
                        reader.requireBody(model.base(), own);
                    } else {
                        reader.requireParameters(model.base());
                    }
                    requireSame(checkpoint.path(), own, model);
                },
                reader::close);
    }

    /** Moments are those of what was trained. */
    private static void requireSameTuning(Path weights, ModelConfig own, ModelConfig model) {
        requireSameAdapters(weights, own, model);
        if (!own.fineTuning().freeze().equals(model.fineTuning().freeze())) {
            throw new StoredFileException(
                    weights,
                    "expected the frozen parameters of the run: the checkpoint has fine-tune.freeze = %s, the run has %s; try --init, which begins with new moments"
                            .formatted(own.fineTuning().freeze(), model.fineTuning().freeze()));
        }
    }

    private static void requireSameAdapters(Path weights, ModelConfig own, ModelConfig model) {
        if (!branches(own).equals(branches(model))) {
            throw new StoredFileException(
                    weights,
                    "expected the adapters of the run: the checkpoint has %s, the run has %s; see fine-tune.method, or try penstock checkpoint export, which merges them"
                            .formatted(adapters(own), adapters(model)));
        }
    }

    /** How much is dropped may change, as a learning rate may. */
    private static Optional<Adapters> branches(ModelConfig model) {
        return model.fineTuning().adapters().map(adapters -> adapters.dropping(0));
    }

    private static String adapters(ModelConfig model) {
        return AdapterParts.words(model).orElse("none");
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

    /** The loss scaler with which the run goes on from here. */
    LossScaler scaler(LossScaling rules) {
        LossScaler saved = LossScaler.parse(rules, lossScale).orElse(LossScaler.first(rules));
        var history = new LossScaleHistory(Optional.of(saved), scaledStep);
        history.replay(
                overflows.stream().filter(step -> step > scaledStep).toList(), completedSteps);
        return history.now().orElseThrow();
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
